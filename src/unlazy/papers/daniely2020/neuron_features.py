"""Random neurons that approximate a feature ψ_r after the exact first step, and separators of them.

Reference: daniely2020, Lemmas 9 and 10.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.stats
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require
from unlazy.lab.power_laws import slope
from unlazy.lab.trials import ExactComputation
from unlazy.papers.daniely2020.initial_neurons import InitialNeurons
from unlazy.papers.daniely2020.separators import levels, printed_separator, separator
from unlazy.theory.parity_gradients import CEILING, FirstGradients

#: Grid points of u around the value that gives the target feature.
GRID_POINTS = 401
#: Values of the number of weights outside A; others are represented by their neighbors.
OUTSIDE_VALUES = 300
#: Smallest α for which a neuron can have a feature.
_NO_SIGNAL = 1e-9


@dataclasses.dataclass(frozen=True)
class SteppedNeurons:
    """Neurons whose initial weights in A sum to zero, after the exact first step, by their counts.

    After the step the preactivation is u·α·z/n + b + u·`bias`, up to |u|·`stray` for the worst bits
    outside A, where z is the sum of the bits in A. `probability`: of the counts.
    """

    n: int
    k: int
    alpha: np.ndarray
    bias: np.ndarray
    stray: np.ndarray
    probability: np.ndarray

    @classmethod
    def of(cls, n: int, k: int, structured: float = 0.5) -> SteppedNeurons:
        """Return all counts; `structured`: fraction of inputs in which all bits of A are equal."""
        neurons = InitialNeurons.of(n, k, cancelling=True, max_values=OUTSIDE_VALUES)
        exact, rows = FirstGradients(n, k, 1 / (8 * k)), (neurons.plus, neurons.minus)
        found = exact.uniform(*rows, neurons.outside).mixed(
            exact.structured(*rows, neurons.outside), structured
        )
        kinds = np.stack([found.on_plus, found.on_zero, found.on_minus])
        occurs = np.stack([neurons.plus > 0, neurons.plus + neurons.minus < k, neurons.minus > 0])
        alpha = (
            neurons.plus * kinds[0]
            + (k - neurons.plus - neurons.minus) * kinds[1]
            + neurons.minus * kinds[2]
        ) / k
        unequal = k * np.max(np.where(occurs, np.abs(kinds - alpha), 0.0), axis=0)
        stray = (unequal + neurons.outside * np.abs(found.off)) / n
        return cls(n, k, alpha, found.bias, stray, neurons.probability)

    @property
    def b(self) -> float:
        """The initial bias."""
        return 1 / (8 * self.k)

    def chosen(self, index: np.ndarray) -> SteppedNeurons:
        """Return the neurons with these indices."""
        columns = (self.alpha, self.bias, self.stray, self.probability)
        return SteppedNeurons(self.n, self.k, *(column[index] for column in columns))

    def target(self, r: int) -> np.ndarray:
        """Return the u at which a neuron without strays is ψ_r."""
        result: np.ndarray = -self.b * self.n / (np.maximum(self.alpha, _NO_SIGNAL) * r)
        return result

    def outputs(self, u: np.ndarray, z: int, side: int) -> np.ndarray:
        """Return σ of the largest (`side` = 1) or smallest (−1) preactivation at z."""
        middle = u * self.alpha * z / self.n + self.b + u * self.bias
        result: np.ndarray = np.clip(middle + side * np.abs(u) * self.stray, 0.0, CEILING)
        return result

    def near(self, u: np.ndarray, r: int, tolerance: float) -> np.ndarray:
        """Return whether (|r|/b)·σ is within `tolerance` of ψ_r, not truncated, on all inputs."""
        result: np.ndarray = (self.alpha > _NO_SIGNAL) & (np.abs(u) <= self.n / self.k)
        for z in range(-self.k, self.k + 1, 2):
            psi = max(-math.copysign(z, r * z) + abs(r), 0.0)
            for side in (-1, 1):
                feature = abs(r) / self.b * self.outputs(u, z, side)
                result = result & (np.abs(feature - psi) <= tolerance)
        return result

    def share(self, r: int, epsilon: float, tolerance: float) -> float:
        """Return the probability that a neuron is within `tolerance` of ψ_r on all inputs."""
        reach = 4 * np.abs(self.target(r)) * epsilon / self.k
        u = self.target(r) + reach * np.linspace(-1, 1, GRID_POINTS)[:, None]
        length = np.mean(self.near(u, r, tolerance), axis=0) * 2 * reach
        return float(np.sum(self.probability * length / (2 * self.n / self.k)))


class FeatureFraction(ExactComputation):
    """Lemma 9 over the number n of bits: probability that a neuron is within 2ε of ψ_r on every
    input, for ε = `factors` times 1/(10k), at most k·|r|.

    `wanted`: minimum over r and ε of that probability, divided by ε/(112·k^2.5); at least 1 by the
    lemma. Only neurons whose weights in A sum to zero are counted, with the worst sum over bits
    outside A, so the probability is a lower bound. The second-layer weight u contributes the length
    of the set of u for which the neuron is close enough. `tight` (negative control): 2ε·n^(−tight)
    replaces 2ε, which is false for large n.
    """

    KEY = "FeatureShare"

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    tight: float = eqx.field(static=True, default=0.0)
    factors: tuple[float, ...] = eqx.field(static=True, default=(1.0,))

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        return {"wanted": np.array([self._one(n) for n in self.sizes])}

    def _one(self, n: int) -> float:
        neurons, wanted = SteppedNeurons.of(n, self.k), math.inf
        for r in levels(self.k):
            for factor in self.factors:
                epsilon = min(factor / (10 * self.k), self.k * abs(r))
                found = neurons.share(r, epsilon, 2 * epsilon * n**-self.tight)
                wanted = min(wanted, found / (epsilon / (112 * self.k**2.5)))
        return wanted


class SeparatorNorms(ExactComputation):
    """Lemma 10 for random initializations, over the number q of pairs of neurons.

    u* is built as in the proof: for each r the first pq/2 of the neurons within 2ε of ψ_r, ε =
    1/(10k), p = 1/(1120·k^3.5), with weight 2·c_r·|r|/(b·|J_r|) each, c_r the coefficients of
    `separator`. The factor 2 is ours: the proof leaves a margin of about 1/2.

    `failure`: probability that for some r fewer than pq/2 of the first q neurons are that close
    (union bound over r, exact). `margin`: minimum of y·g*, a lower bound, since each neuron has its
    worst bits outside A. `height`: maximum over inputs of a neuron with u*_i ≠ 0. `norm`:
    ‖u*‖₂·√q/k⁵. `support`: ‖u*‖₀·k^2.5/q. `norm_all`: ‖u*‖₂·√q/k⁵ if all neurons that are close
    have equal weights; `norm_slope`: slope of the logarithm of this ‖u*‖₂ in log q. Without enough
    neurons there is no u*, and these are not finite. `structured` = 0 (negative control): no
    all-equal part. `printed`: the printed coefficients.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    structured: float = eqx.field(static=True, default=0.5)
    printed: bool = eqx.field(static=True, default=False)

    axis = "sizes"

    def __check_init__(self) -> None:
        require(min(self.sizes) > 0, f"`sizes` must be positive, got {self.sizes}.")

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        draw = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        neurons = SteppedNeurons.of(self.n, self.k, self.structured)
        rows = [self._one(q, neurons, draw) for q in self.sizes]
        measured = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        if len(self.sizes) > 1:
            q = np.array(self.sizes, float)
            found = slope(np.log(q), np.log(measured["norm_all"] / np.sqrt(q)))
            measured["norm_slope"] = np.full(len(q), found)
        return measured

    def _one(self, q: int, neurons: SteppedNeurons, draw: np.random.Generator) -> dict[str, float]:
        k, epsilon = self.k, 1 / (10 * self.k)
        size = math.ceil(q / (2 * 1120 * k**3.5))  # of J_r
        shares = [neurons.share(r, epsilon, 2 * epsilon) for r in levels(k)]
        failure = min(float(np.sum(scipy.stats.binom.cdf(size - 1, q, shares))), 1.0)
        coefficients = (printed_separator if self.printed else separator)(k)
        # Neurons whose weights in A do not cancel have no feature, and are not drawn.
        total = float(np.sum(neurons.probability))
        count = draw.binomial(q, min(total, 1.0))
        index = draw.choice(len(neurons.alpha), size=count, p=neurons.probability / total)
        u = draw.uniform(-self.n / k, self.n / k, size=count)
        z = np.arange(-k, k + 1, 2)
        label = np.where((k - z) // 2 % 2 == 0, 1.0, -1.0)
        margin, height, squares, squares_all = np.zeros(len(z)), 0.0, 0.0, 0.0
        for r, coefficient in zip(levels(k), coefficients, strict=True):
            wide = 4 * np.abs(neurons.target(r)) * epsilon / k
            close = np.flatnonzero(np.abs(u - neurons.target(r)[index]) <= wide[index])
            mine = neurons.chosen(index[close])
            near = np.flatnonzero(mine.near(u[close], r, 2 * epsilon))
            if len(near) < size:
                missing = ("margin", "height", "norm", "support", "norm_all")
                return {"failure": failure} | dict.fromkeys(missing, math.nan)
            kept = near[:size]
            mine, own = mine.chosen(kept), u[close][kept]
            weight = 2 * coefficient * abs(r) / (neurons.b * size)
            squares += size * weight**2
            squares_all += (weight * size) ** 2 / len(near)
            for i, (value, sign) in enumerate(zip(z.tolist(), label, strict=True)):
                low, high = (mine.outputs(own, value, side) for side in (-1, 1))
                margin[i] += np.sum(np.minimum(sign * weight * low, sign * weight * high))
                height = max(height, float(np.max(high)))
        return {
            "failure": failure,
            "margin": float(np.min(margin)),
            "height": height,
            "norm": math.sqrt(squares * q) / k**5,
            "support": len(coefficients) * size * k**2.5 / q,
            "norm_all": math.sqrt(squares_all * q) / k**5,
        }
