"""First gradient step: exact expectations, and exact probabilities over the random initialization.

The first gradient of a neuron depends on its ternary weights only through the numbers of 1 and −1
in A and the number of nonzero weights outside A. Their distribution is the product of a trinomial
and a binomial distribution, so probabilities over neurons are sums and not samples.

Reference: daniely2020, Section 4.1, Lemma 12.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.special import comb, gammaln

from unlazy.lab.trials import ExactComputation
from unlazy.papers.daniely2020.initial_neurons import InitialNeurons
from unlazy.theory.parity_gradients import FirstGradients, NeuronGradients

#: Constants c and C for which Lemmas 3 and 4 are tested.
FACTORS = (1.5, 2.0, 4.0, 8.0, 16.0)


class FirstStepGradients(ExactComputation):
    """Quantities of Lemmas 3, 4, 6, 7 and 12 divided by their bounds, over the number n of bits and
    all neurons of the random initialization.

    `chance3`, `chance4`: maximum of c·P[a neuron exceeds c times the bound], at most 1 by the
    lemmas. `mean3`: mean over neurons of gradient divided by bound, at most 1 by the proof.
    `ratio6`: maximum deviation of Lemma 6 divided by (3k + 1)·√(2/(π|J|)), its bound with the sharp
    Littlewood–Offord constant. `good`: probability of a good neuron of Lemma 7, times 14√k.
    `least_alpha`, `greatest_alpha`: minimum and maximum of E[z_j f σ'] over j in A and good
    neurons. `off7`, `bias7`: their gradients off A and of the bias at u = n/k, divided by the
    bounds of the proof. `ratio12`: maximum of |E f σ| divided by k/√n.

    `rate` (negative control): bounds are multiplied by n^(−rate). `part`: part of the inputs for
    Lemmas 3 and 4. `only_good`: omit neurons whose weights in A do not sum to zero, which Lemma 7
    does not need.
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
        neurons, exact = (
            InitialNeurons.of(n, self.k, cancelling=self.only_good),
            FirstGradients(n, self.k, 1 / (8 * self.k)),
        )
        uniform = exact.uniform(neurons.plus, neurons.minus, neurons.outside)
        structured = exact.structured(neurons.plus, neurons.minus, neurons.outside)
        mixed, bend = uniform.mixed(structured), n**-self.rate
        small = bend * math.exp(-0.5 * _log_comb(n - 1, self.k))
        chosen = uniform if self.part == "uniform" else structured
        three = np.abs(chosen.off)
        four = np.maximum(three, np.abs(chosen.bias))
        # Lemma 3 fixes one bit outside A; its weight is zero for a third of the neurons.
        chance3 = max(c * 2 / 3 * np.sum(neurons.probability[three > c * small]) for c in FACTORS)
        chance4 = max(c * np.sum(neurons.probability[four > c * (n - 1) * small]) for c in FACTORS)
        good = self._good(n, neurons, uniform, small)
        larger = np.maximum(2 / 3 * three, np.abs(chosen.bias))
        mean3 = float(np.sum(neurons.probability * larger)) / small
        measured = {
            "chance3": chance3,
            "chance4": chance4,
            "mean3": mean3,
            "good": float(np.sum(neurons.probability[good])) * 14 * math.sqrt(self.k) * bend,
        }
        return (
            measured
            | self._lemma6(neurons, mixed, exact, bend)
            | self._lemma7(n, good, mixed, bend)
            | self._lemma12(n, mixed, bend)
        )

    def _good(
        self, n: int, neurons: InitialNeurons, uniform: NeuronGradients, small: float
    ) -> np.ndarray:
        """Return which neurons have the three properties in the proof of Lemma 7."""
        quiet = (
            np.maximum(np.abs(uniform.off), np.abs(uniform.bias))
            <= 14 * math.sqrt(self.k) * (n - 1) * small
        )
        result: np.ndarray = quiet & neurons.cancelling & (neurons.outside >= (n - self.k) / 3)
        return result

    def _lemma6(
        self, neurons: InitialNeurons, mixed: NeuronGradients, exact: FirstGradients, bend: float
    ) -> dict[str, float]:
        """Return `ratio6`; h(x) = z_j f(x) has mean 1/2 under the mixture, for every j in A."""
        many = neurons.outside >= 1
        inner = exact.surely_rising(neurons.outside)
        bound = (3 * self.k + 1) * np.sqrt(2 / (math.pi * np.maximum(neurons.outside, 1))) * bend
        values = (mixed.on_plus, mixed.on_zero, mixed.on_minus)
        there = (neurons.plus > 0, neurons.plus + neurons.minus < self.k, neurons.minus > 0)
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


class FunctionsOnParity(ExactComputation):
    """Lemma 6 for all functions h of the bits in A at once, over the number n of bits.

    Given the bits of A, σ' has probability π(r) with r = Σ_{j∈A} w_j z_j. So the maximum over all h
    of |E[h σ'] − E[h]·φ| is E|π(r) − φ|, for the h that is the sign of π(r) − φ. `ratio_all`: its
    maximum over neurons with |J| ≥ 1, divided by the bound (3k + 1)·√(2/(π|J|)). `rate` (negative
    control): the bound is multiplied by n^(−rate).
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    rate: float = eqx.field(static=True, default=0.0)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        return {"ratio_all": np.array([self._one(n) for n in self.sizes])}

    def _one(self, n: int) -> float:
        neurons = InitialNeurons.of(n, self.k)
        exact = FirstGradients(n, self.k, 1 / (8 * self.k))
        M, K = neurons.outside, neurons.plus + neurons.minus
        inner = exact.surely_rising(M)

        def gap(r: np.ndarray) -> np.ndarray:
            result: np.ndarray = np.abs(exact.rising(r.astype(float), M) - inner)
            return result

        W = neurons.plus - neurons.minus
        mean = 0.25 * (gap(W) + gap(-W))  # all bits of A equal
        for h in range(self.k + 1):
            mean += 0.5 * np.where(h <= K, comb(K, h) * 0.5**K, 0.0) * gap(K - 2 * h)
        bound = (3 * self.k + 1) * np.sqrt(2 / (math.pi * np.maximum(M, 1))) * n**-self.rate
        return float(np.max((mean / bound)[M >= 1]))


class CancellingNeurons(ExactComputation):
    """Lemma 5: maximum gradient off A and of the bias on the all-equal part, over all neurons whose
    weights in A sum to `sum`.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    sum: int = eqx.field(static=True, default=0)

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        for n in self.sizes:
            neurons = InitialNeurons.of(n, self.k)
            part = FirstGradients(n, self.k, 1 / (8 * self.k)).structured(
                neurons.plus, neurons.minus, neurons.outside
            )
            chosen = neurons.plus - neurons.minus == self.sum
            rows.append(
                (
                    np.max(np.abs(part.off[chosen])),
                    np.max(np.abs(part.bias[chosen])),
                    np.sum(neurons.probability[chosen]),
                )
            )
        off, bias, probability = np.array(rows).T
        return {"off": off, "bias": bias, "share": probability}
