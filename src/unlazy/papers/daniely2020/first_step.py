"""What the first gradient step does to all neurons at once: exact expectations, and exact shares of
neurons under the random start.

A neuron's first gradient depends on its ternary weights by how many in A are 1 and −1, and how many
outside A are not 0. Their law is a product of a trinomial and a binomial one, so shares of neurons
are sums and not samples.

Reference: daniely2020, Section 4.1, Lemma 12.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.special import gammaln

from unlazy.lab.trials import ExactComputation
from unlazy.papers.daniely2020.random_start import RandomStart
from unlazy.theory.parity_gradients import FirstGradients, NeuronGradients

#: Constants c and C at which Lemmas 3 and 4 are looked at.
FACTORS = (1.5, 2.0, 4.0, 8.0, 16.0)


class FirstStepGradients(ExactComputation):
    """Lemmas 3, 4, 6, 7 and 12 over the number n of bits: each quantity beside its bound, over all
    neurons of the random start.

    `chance3`, `chance4`: the greatest c·P[a neuron is above c times the bound], at most 1 by the
    lemmas; `mean3`: the mean over neurons of the gradient over the bound, at most 1 by the proof;
    `ratio6`: the greatest deviation of Lemma 6 over (3k + 1)·√(2/(π|J|)), its bound with the sharp
    constant of Littlewood and Offord; `good`: the share of good neurons of Lemma 7 times 14√k;
    `least_alpha`, `greatest_alpha`: E[z_j f σ'] for j in A over good neurons; `off7`, `bias7`:
    their gradients off A and of the bias, times u ≤ n/k, over the bounds of the proof; `ratio12`:
    the greatest |E f σ| over k/√n.

    `rate` bends the bounds: each is multiplied by n^(−rate), which makes the statements false.
    `part`: on which part of the inputs Lemmas 3 and 4 are looked at. `only_good`: neurons whose
    weights in A do not cancel are left out, which Lemma 7 does not need.
    """

    KEY = "FirstStepLaw"

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    rate: float = eqx.field(static=True, default=0.0)
    part: Literal["uniform", "structured"] = eqx.field(static=True, default="uniform")
    only_good: bool = eqx.field(static=True, default=False)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._one(n) for n in self.sizes]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _one(self, n: int) -> dict[str, float]:
        start, exact = (
            RandomStart.of(n, self.k, cancelling=self.only_good),
            FirstGradients(n, self.k, 1 / (8 * self.k)),
        )
        uniform = exact.uniform(start.plus, start.minus, start.outside)
        structured = exact.structured(start.plus, start.minus, start.outside)
        mixed, bend = uniform.mixed(structured), n**-self.rate
        small = bend * math.exp(-0.5 * _log_comb(n - 1, self.k))
        looked = uniform if self.part == "uniform" else structured
        three = np.abs(looked.off)
        four = np.maximum(three, np.abs(looked.bias))
        # In Lemma 3 one bit outside A is fixed, whose weight is zero for a third of the neurons.
        chance3 = max(c * 2 / 3 * np.sum(start.share[three > c * small]) for c in FACTORS)
        chance4 = max(c * np.sum(start.share[four > c * (n - 1) * small]) for c in FACTORS)
        good = self._good(n, start, uniform, small)
        mean3 = float(np.sum(start.share * np.maximum(2 / 3 * three, np.abs(looked.bias)))) / small
        found = {
            "chance3": chance3,
            "chance4": chance4,
            "mean3": mean3,
            "good": float(np.sum(start.share[good])) * 14 * math.sqrt(self.k) * bend,
        }
        return (
            found
            | self._lemma6(start, mixed, exact, bend)
            | self._lemma7(n, good, mixed, bend)
            | self._lemma12(n, mixed, bend)
        )

    def _good(
        self, n: int, start: RandomStart, uniform: NeuronGradients, small: float
    ) -> np.ndarray:
        """The three properties in the proof of Lemma 7."""
        quiet = (
            np.maximum(np.abs(uniform.off), np.abs(uniform.bias))
            <= 14 * math.sqrt(self.k) * (n - 1) * small
        )
        result: np.ndarray = quiet & start.cancelling & (start.outside >= (n - self.k) / 3)
        return result

    def _lemma6(
        self, start: RandomStart, mixed: NeuronGradients, exact: FirstGradients, bend: float
    ) -> dict[str, float]:
        """h(x) = z_j f(x) has mean 1/2 under the mixture, for every j in A."""
        many = start.outside >= 1
        inner = exact.surely_rising(start.outside)
        bound = (3 * self.k + 1) * np.sqrt(2 / (math.pi * np.maximum(start.outside, 1))) * bend
        values = (mixed.on_plus, mixed.on_zero, mixed.on_minus)
        there = (start.plus > 0, start.plus + start.minus < self.k, start.minus > 0)
        return {
            "ratio6": max(
                float(np.max((np.abs(value - inner / 2) / bound)[many & has]))
                for value, has in zip(values, there, strict=True)
            )
        }

    def _lemma7(
        self, n: int, good: np.ndarray, mixed: NeuronGradients, bend: float
    ) -> dict[str, float]:
        if not np.any(good):
            return dict.fromkeys(("least_alpha", "greatest_alpha", "off7", "bias7"), math.nan)
        on = np.concatenate([mixed.on_plus[good], mixed.on_zero[good], mixed.on_minus[good]])
        u = n / self.k
        return {
            "least_alpha": float(np.min(on)) * bend,
            "greatest_alpha": float(np.max(on)),
            "off7": float(np.max(np.abs(mixed.off[good]))) * u * (n - 1) / (7 * 6**3) / bend,
            "bias7": float(np.max(np.abs(mixed.bias[good])))
            * u
            * math.sqrt(n)
            / (math.sqrt(2) * 7 * 5**2.5)
            / bend,
        }

    def _lemma12(self, n: int, mixed: NeuronGradients, bend: float) -> dict[str, float]:
        return {"ratio12": float(np.max(np.abs(mixed.output))) * math.sqrt(n) / self.k / bend}


def _log_comb(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


class CancellingNeurons(ExactComputation):
    """Lemma 5: on the all-equal part, the greatest gradient off A and of the bias over all neurons
    whose weights in A sum to `sum`.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    sum: int = eqx.field(static=True, default=0)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        for n in self.sizes:
            start = RandomStart.of(n, self.k)
            part = FirstGradients(n, self.k, 1 / (8 * self.k)).structured(
                start.plus, start.minus, start.outside
            )
            chosen = start.plus - start.minus == self.sum
            rows.append(
                (
                    np.max(np.abs(part.off[chosen])),
                    np.max(np.abs(part.bias[chosen])),
                    np.sum(start.share[chosen]),
                )
            )
        off, bias, share = np.array(rows).T
        return {"off": off, "bias": bias, "share": share}
