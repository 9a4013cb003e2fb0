"""Algorithm 1 with the sample size, width, learning rate and steps of Theorems 2 and 4.

The theorems require millions of examples. Up to sixteen inputs, such a sample is represented by the
counts of all inputs, which are drawn from their multinomial distribution.

Reference: malach2019, Theorems 2 and 4, Section 5.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import numpy as np

from unlazy.core.errors import require
from unlazy.learners.circuits.layerwise import learn_circuit
from unlazy.networks.tree import initial_tree
from unlazy.papers.malach2019.computations import (
    OverSizes,
    all_inputs,
    generative_masses,
    plain_evaluation,
)
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.correlation import Correlations, correlations, simplified
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    InputDistribution,
    ProductDistribution,
    WeightedSample,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.families import LISTED
from unlazy.tasks.circuits.recovery import WeightedSampleStatistics, recovery

#: P(x_j = 1) of parities with identical bits, and ξ of parities with different p_j.
BIAS, XI_DRAWN = 0.75, 0.2
#: δ of the theorems.
DELTA = 0.05
#: Neurons per gate: at least the width that the theorems require up to sixteen inputs.
NEURONS_OF_GATE = 32
#: Minimum Δ of random circuits under random product distributions.
MIN_DELTA = 0.05

Drawn = Literal["generative", "parity", "product", "uncorrelated"]


def parity_margin(p: float, k: int) -> float:
    """Return Δ of a parity of k bits with P(x_j = 1) = p."""
    return abs(2 * p - 1) ** (k - 1) * (1 - abs(2 * p - 1))


def theorem_width(n: int, delta: float = DELTA) -> float:
    """Return the bound k ≥ log(2nd/δ)/log(4/3) of Theorems 2 and 4."""
    return math.log(2 * n * (n.bit_length() - 1) / delta) / math.log(4 / 3)


def theorem_sample(epsilon: float, margin: float, n: int, delta: float = DELTA) -> float:
    """Return the bound |S| > 2¹¹/(ε²Δ²)·log(8nd/δ) of Theorem 4 (Theorem 2: ε = Δ²/4)."""
    return 2**11 / (epsilon * margin) ** 2 * math.log(8 * n * (n.bit_length() - 1) / delta)


def theorem_steps(epsilon: float, margin: float, n: int, rate: float) -> float:
    """Return the bound T > 6n/(√2·η·ε·Δ) of Theorem 4, per layer (Theorem 2: ε = Δ²/4)."""
    return 6 * n / (math.sqrt(2) * rate * epsilon * margin)


@dataclasses.dataclass(frozen=True)
class Case:
    """Circuit, input distribution, and Δ and ε for which the theorems' assumptions hold."""

    circuit: Circuit
    distribution: InputDistribution
    margin: float
    epsilon: float

    @property
    def masses(self) -> np.ndarray:
        """P(x) of every input."""
        if isinstance(self.distribution, GenerativeDistribution):
            return generative_masses(self.circuit)
        assert isinstance(self.distribution, ProductDistribution)
        result: np.ndarray = np.prod(
            np.where(all_inputs(self.circuit.n), self.distribution.p, 1 - self.distribution.p),
            axis=1,
        )
        return result

    def sample(self, size: int, rng: np.random.Generator) -> WeightedSample:
        """Return `size` independent examples as distinct inputs with their frequencies."""
        masses = self.masses
        counts = rng.multinomial(size, masses / masses.sum())
        x = all_inputs(self.circuit.n)
        y = plain_evaluation(self.circuit, x)[0][:, 0] > 0
        drawn = counts > 0
        return WeightedSample(x[drawn], y[drawn], counts[drawn] / size)


def draw_case(kind: Drawn, n: int, rng: np.random.Generator) -> Case:
    """Draw a circuit with n inputs and its distribution.

    generative: AND/OR/NAND/NOR circuits, generative distribution (Section 5.2);
    parity: log₂ n bits, p_j from (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ), ξ = 0.2 (Section 5.1);
    product: all gates, random product distributions with LCA, Δ ≥ 0.05 (Theorem 2);
    uncorrelated: parities of uniform bits, without LCA, with Δ and ε of biased bits.
    """
    k = n.bit_length() - 1
    if kind == "generative":
        circuit = random_circuit(n, rng)
        return _case(circuit, GenerativeDistribution(circuit))
    if kind != "product":
        circuit = parity_circuit(n, rng.choice(n, k, replace=False).tolist())
        if kind == "uncorrelated":
            return Case(
                circuit,
                ProductDistribution(np.full(n, 0.5)),
                parity_margin(BIAS, k),
                (1 - BIAS) ** 2,
            )
        low = rng.uniform(XI_DRAWN, 0.5 - XI_DRAWN, n)
        return _case(circuit, ProductDistribution(np.where(rng.random(n) < 0.5, low, 1 - low)))
    while True:
        circuit, p = simplified(random_circuit(n, rng, NAMES)), rng.uniform(0.1, 0.9, n)
        case = _case(circuit, ProductDistribution(p))
        delta = min(case.margin, p.min(), 1 - p.max())
        if MIN_DELTA <= delta < 0.5 and np.isfinite(case.margin):
            # Theorem 2 has no ε of its own.
            return dataclasses.replace(case, margin=delta, epsilon=delta**2 / 4)


def _case(circuit: Circuit, distribution: InputDistribution) -> Case:
    known: Correlations = correlations(circuit, distribution)
    return Case(circuit, distribution, known.margin, known.epsilon)


class TheoremRuns(OverSizes):
    """Algorithm 1 as in Theorems 2 and 4, δ = 0.05, on `circuits` cases per size n.

    `failed`: fraction of runs, over sizes up to n, with nonzero error or a gate output other than
    ±1 after T steps. `sample`, `theorem_steps`: |S| and T of the first case. `steps`: steps until
    the gradients of the slowest layer of all cases vanish. `margin`: minimum Δ. `sample_share`,
    `steps_share`: minimum ratios of used to required |S| and T.
    """

    kind: Drawn = eqx.field(static=True, kw_only=True)
    circuits: int = eqx.field(static=True, default=4, kw_only=True)

    WORST: ClassVar = {"margin": np.minimum, "sample_share": np.minimum, "steps_share": np.minimum}

    def __check_init__(self) -> None:
        require(
            max(self.sizes) <= LISTED, f"`sizes` must be at most {LISTED}, got {max(self.sizes)}."
        )
        require(
            theorem_width(max(self.sizes)) <= NEURONS_OF_GATE,
            f"{NEURONS_OF_GATE} neurons per gate are fewer than the theorem requires.",
        )

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        failed, steps, margins, used = 0, 0.0, [], []
        rate = 1 / (16 * math.sqrt(2) * NEURONS_OF_GATE)
        for _ in range(self.circuits):
            case = draw_case(self.kind, n, rng)
            required = (
                theorem_sample(case.epsilon, case.margin, n),
                theorem_steps(case.epsilon, case.margin, n, rate),
            )
            size, limit = (math.floor(bound) + 1 for bound in required)
            tree = initial_tree(n, NEURONS_OF_GATE, key=jax.random.key(int(rng.integers(2**31))))
            statistics = WeightedSampleStatistics(case.sample(size, rng))
            learned = learn_circuit(
                statistics, tree, margin=case.margin, rate="theorem", limit=limit
            )
            wrong = recovery(case.circuit, case.distribution, learned.circuit).error > 1e-12
            failed += wrong or not learned.settled
            steps = max(steps, max(learned.steps))
            margins.append(case.margin)
            used.append((size, limit, size / required[0], limit / required[1]))
        return {
            "failed": failed / self.circuits,
            "steps": steps,
            "sample": used[0][0],
            "theorem_steps": used[0][1],
            "margin": min(margins),
            "sample_share": min(each[2] for each in used),
            "steps_share": min(each[3] for each in used),
        }

    def measure(self, *, key: Any) -> dict[str, Any]:
        table = super().measure(key=key)
        return table | {"failed": np.cumsum(table["failed"]) / np.arange(1, len(self.sizes) + 1)}
