"""Section 4.1: influencing gates without correlation with the label become constant.

Reference: malach2019, Section 4.1.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np

from unlazy.learners.circuits.layerwise import LearnedCircuit, learn_circuit
from unlazy.networks.tree import initial_tree, width_for
from unlazy.papers.malach2019.computations import OverSizes
from unlazy.papers.malach2019.theorem_runs import Case
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.correlation import correlations, tables
from unlazy.tasks.circuits.distributions import ProductDistribution
from unlazy.tasks.circuits.examples import parity_circuit
from unlazy.tasks.circuits.families import LISTED
from unlazy.tasks.circuits.recovery import (
    PopulationStatistics,
    WeightedSampleStatistics,
    all_transfers,
    recovery,
)

#: Δ that sets λ > |E y|; without local correlation there is no positive Δ.
MIN_MARGIN = 0.01
#: Number of examples for which chance correlations are far below λ = 0.0025.
EXAMPLES = 10**10


def one_fair_bit(bias: float, fair: float = 0.5) -> Case:
    """Return the parity of four bits with P(x1 = 1) = `fair` and P(x_j = 1) = `bias` otherwise.

    For a uniform x1 the gate of x3 and x4 has no correlation with the label.
    """
    circuit, distribution = (
        Circuit.parse("XNOR / XNOR XNOR"),
        ProductDistribution(np.array([fair, bias, bias, bias])),
    )
    return Case(circuit, distribution, MIN_MARGIN, 0.0)


class UncorrelatedGates(OverSizes):
    """Algorithm 1 on parities of log₂ n bits with P(x_j = 1) = p.

    At n = 4, one such bit and three biased bits. `constant`: among influencing gates without
    correlation at p = ½, the fraction learned as constant on all inputs that occur;
    `least_constant`: minimum over runs and sizes up to n. `recovered`: fraction of runs, over sizes
    up to n, with zero error. Runs use the exact distribution, and up to n = 16 also a sample of
    10¹⁰ examples.
    """

    p: float = eqx.field(converter=float, default=0.5, kw_only=True)

    WORST: ClassVar = {"least_constant": np.minimum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        constant, recovered = [], []
        for case, fair in self._cases(n, rng):
            sources = [PopulationStatistics(case.circuit, case.distribution)]
            if n <= LISTED:
                sources.append(WeightedSampleStatistics(case.sample(EXAMPLES, rng)))  # type: ignore[arg-type]
            for source in sources:
                tree = initial_tree(
                    n, width_for(n, 0.001), key=jax.random.key(int(rng.integers(2**31)))
                )
                learned = learn_circuit(source, tree, margin=case.margin, rate="scaled")
                constant.append(constant_fraction(case, fair, learned))
                recovered.append(
                    recovery(case.circuit, case.distribution, learned.circuit).error <= 1e-12
                )
        return {
            "constant": np.mean(constant),
            "least_constant": np.min(constant),
            "recovered": np.mean(recovered),
        }

    def _cases(self, n: int, rng: np.random.Generator) -> list[tuple[Case, Case]]:
        """Return cases, each with the same circuit on uniform bits, which selects the gates."""
        if n == 4:
            return [(one_fair_bit(0.85, self.p), one_fair_bit(0.85))]
        circuit = parity_circuit(n, rng.choice(n, n.bit_length() - 1, replace=False).tolist())
        biased, fair = (
            Case(circuit, ProductDistribution(np.full(n, p)), MIN_MARGIN, 0.0)
            for p in (self.p, 0.5)
        )
        return [(biased, fair)]

    def measure(self, *, key: Any) -> dict[str, Any]:
        table = super().measure(key=key)
        return table | {
            "recovered": np.cumsum(table["recovered"]) / np.arange(1, len(self.sizes) + 1)
        }


def constant_fraction(case: Case, fair: Case, learned: LearnedCircuit) -> float:
    """Return the fraction of gates learned as constant on all inputs that occur.

    It counts gates with influence and without correlation in the `fair` case.
    """
    known = correlations(fair.circuit, fair.distribution)
    transfer = all_transfers(
        case.circuit, tables(case.circuit, case.distribution), learned.circuit.levels[::-1]
    )
    constant = []
    for level in range(1, case.circuit.depth):
        one = transfer[case.circuit.depth - level][:, :, 1]
        is_constant = np.all(one <= 1e-12, axis=1) | np.all(one >= 1 - 1e-12, axis=1)
        counted = (np.abs(known.c[level]) <= 1e-12) & (known.influence[level] > 0)
        constant.append(is_constant[counted])
    return float(np.mean(np.concatenate(constant)))
