"""Theorems 2 and 4 to the letter: Algorithm 1 with their own sample size, width, step size and
number of steps.

They ask for millions of examples where hundreds would do. Up to sixteen inputs that is no obstacle:
a sample is known by how often each input came, and these counts are drawn at once from their
multinomial law.

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

#: P(x_j = 1) of the biased parities where all bits have one law, and ξ where each has its own.
BIAS, XI_DRAWN = 0.75, 0.2
#: δ of the theorems where their numbers are evaluated.
DELTA = 0.05
#: Neurons of a gate: at least what the theorems ask for up to sixteen inputs.
NEURONS_OF_GATE = 32
#: Random circuits under random product laws are taken from Δ = 0.05 on.
MIN_DELTA = 0.05

Drawn = Literal["generative", "parity", "product", "uncorrelated"]


def parity_margin(p: float, k: int) -> float:
    """Δ of a parity of k bits with P(x_j = 1) = p."""
    return abs(2 * p - 1) ** (k - 1) * (1 - abs(2 * p - 1))


def theorem_width(n: int, delta: float = DELTA) -> float:
    """k ≥ log(2nd/δ)/log(4/3) of Theorems 2 and 4."""
    return math.log(2 * n * (n.bit_length() - 1) / delta) / math.log(4 / 3)


def theorem_sample(epsilon: float, margin: float, n: int, delta: float = DELTA) -> float:
    """|S| > 2¹¹/(ε²Δ²)·log(8nd/δ) of Theorem 4; with ε = Δ²/4 it is that of Theorem 2."""
    return 2**11 / (epsilon * margin) ** 2 * math.log(8 * n * (n.bit_length() - 1) / delta)


def theorem_steps(epsilon: float, margin: float, n: int, rate: float) -> float:
    """T > 6n/(√2·η·ε·Δ) of Theorem 4, for each layer; with ε = Δ²/4 it is that of Theorem 2."""
    return 6 * n / (math.sqrt(2) * rate * epsilon * margin)


@dataclasses.dataclass(frozen=True)
class Case:
    """A circuit, a law, and the Δ and ε for which the theorems' assumptions hold."""

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
        """`size` independent examples, as the inputs that came with their shares."""
        masses = self.masses
        counts = rng.multinomial(size, masses / masses.sum())
        x = all_inputs(self.circuit.n)
        y = plain_evaluation(self.circuit, x)[0][:, 0] > 0
        seen = counts > 0
        return WeightedSample(x[seen], y[seen], counts[seen] / size)


def draw_case(kind: Drawn, n: int, rng: np.random.Generator) -> Case:
    """AND/OR/NAND/NOR circuits under the generative law (Section 5.2); parities of log₂ n bits,
    each p_j drawn from (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ) with ξ = 0.2 (Section 5.1); random circuits of
    all gates under random product laws with LCA, Δ ≥ 0.05 (Theorem 2); and parities of fair bits,
    which have no LCA but are given the Δ and ε of biased ones.
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
        found = _case(circuit, ProductDistribution(p))
        delta = min(found.margin, p.min(), 1 - p.max())
        if MIN_DELTA <= delta < 0.5 and np.isfinite(found.margin):
            # Theorem 2 knows Δ alone.
            return dataclasses.replace(found, margin=delta, epsilon=delta**2 / 4)


def _case(circuit: Circuit, distribution: InputDistribution) -> Case:
    known: Correlations = correlations(circuit, distribution)
    return Case(circuit, distribution, known.margin, known.epsilon)


class TheoremRuns(OverSizes):
    """Algorithm 1 as Theorems 2 and 4 run it, δ = 0.05, on `circuits` cases of each size n.

    `failed`: share of runs, over all sizes up to n, with an error above zero or an output that is
    not ±1 after the theorem's T steps. `sample`, `theorem_steps`: |S| and T of the first case;
    `steps`: after so many the slowest layer of the slowest case stood still. `margin`: least Δ.
    `sample_share`, `steps_share`: least |S| and T that were taken over those that are asked for.
    """

    kind: Drawn = eqx.field(static=True, kw_only=True)
    circuits: int = eqx.field(static=True, default=4, kw_only=True)

    WORST: ClassVar = {"margin": np.minimum, "sample_share": np.minimum, "steps_share": np.minimum}

    def __check_init__(self) -> None:
        require(max(self.sizes) <= LISTED, f"All inputs are listed: n is at most {LISTED}.")
        require(
            theorem_width(max(self.sizes)) <= NEURONS_OF_GATE,
            f"{NEURONS_OF_GATE} neurons are fewer than the theorem asks for.",
        )

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        failed, steps, margins, asked = 0, 0.0, [], []
        rate = 1 / (16 * math.sqrt(2) * NEURONS_OF_GATE)
        for _ in range(self.circuits):
            case = draw_case(self.kind, n, rng)
            needed = (
                theorem_sample(case.epsilon, case.margin, n),
                theorem_steps(case.epsilon, case.margin, n, rate),
            )
            size, longest = (math.floor(number) + 1 for number in needed)
            tree = initial_tree(n, NEURONS_OF_GATE, key=jax.random.key(int(rng.integers(2**31))))
            statistics = WeightedSampleStatistics(case.sample(size, rng))
            learned = learn_circuit(
                statistics, tree, margin=case.margin, rate="theorem", limit=longest
            )
            wrong = recovery(case.circuit, case.distribution, learned.circuit).error > 1e-12
            failed += wrong or not learned.settled
            steps = max(steps, max(learned.steps))
            margins.append(case.margin)
            asked.append((size, longest, size / needed[0], longest / needed[1]))
        return {
            "failed": failed / self.circuits,
            "steps": steps,
            "sample": asked[0][0],
            "theorem_steps": asked[0][1],
            "margin": min(margins),
            "sample_share": min(each[2] for each in asked),
            "steps_share": min(each[3] for each in asked),
        }

    def measure(self, *, key: Any) -> dict[str, Any]:
        found = super().measure(key=key)
        return found | {"failed": np.cumsum(found["failed"]) / np.arange(1, len(self.sizes) + 1)}
