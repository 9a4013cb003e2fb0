"""Section 4.1: what becomes of an influencing gate that has no correlation with the label.

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

#: Where there is no local correlation Δ is not positive; λ then only has to be above E y.
MIN_MARGIN = 0.01
#: So many examples that chance cannot stand for correlation: far more than λ = 0.0025 asks for.
PLENTY = 10**10


def one_fair_bit(bias: float, fair: float = 0.5) -> Case:
    """The parity of four bits with P(x_j = 1) = `bias`, but for a fair x1: the gate on x3, x4 alone
    has no correlation with the label.
    """
    circuit, distribution = (
        Circuit.parse("XNOR / XNOR XNOR"),
        ProductDistribution(np.array([fair, bias, bias, bias])),
    )
    return Case(circuit, distribution, MIN_MARGIN, 0.0)


class UncorrelatedGates(OverSizes):
    """Algorithm 1 on parities of log₂ n bits with P(x_j = 1) = p, and at n = 4 on a parity with one
    such bit among biased ones.

    Of the gates with influence whose correlation is zero when p = ½: `constant`, the share whose
    learned value is the same on every input that occurs; `least_constant` over all sizes up to n.
    `recovered`: share of functions, over all sizes up to n, that are learned without error. On the
    law itself, and up to n = 16 also on a sample of 10¹⁰ examples.
    """

    p: float = eqx.field(converter=float, default=0.5, kw_only=True)

    WORST: ClassVar = {"least_constant": np.minimum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        constant, right = [], []
        for case, fair in self._cases(n, rng):
            sources = [PopulationStatistics(case.circuit, case.distribution)]
            if n <= LISTED:
                sources.append(WeightedSampleStatistics(case.sample(PLENTY, rng)))  # type: ignore[arg-type]
            for source in sources:
                tree = initial_tree(
                    n, width_for(n, 0.001), key=jax.random.key(int(rng.integers(2**31)))
                )
                learned = learn_circuit(source, tree, margin=case.margin, rate="scaled")
                constant.append(constant_share(case, fair, learned))
                right.append(
                    recovery(case.circuit, case.distribution, learned.circuit).error <= 1e-12
                )
        return {
            "constant": np.mean(constant),
            "least_constant": np.min(constant),
            "recovered": np.mean(right),
        }

    def _cases(self, n: int, rng: np.random.Generator) -> list[tuple[Case, Case]]:
        """Each with the same circuit on fair bits, which says what gates are meant."""
        if n == 4:
            return [(one_fair_bit(0.85, self.p), one_fair_bit(0.85))]
        circuit = parity_circuit(n, rng.choice(n, n.bit_length() - 1, replace=False).tolist())
        biased, fair = (
            Case(circuit, ProductDistribution(np.full(n, p)), MIN_MARGIN, 0.0)
            for p in (self.p, 0.5)
        )
        return [(biased, fair)]

    def measure(self, *, key: Any) -> dict[str, Any]:
        found = super().measure(key=key)
        return found | {
            "recovered": np.cumsum(found["recovered"]) / np.arange(1, len(self.sizes) + 1)
        }


def constant_share(case: Case, fair: Case, learned: LearnedCircuit) -> float:
    """The share of influencing gates without correlation in the `fair` case that were learned as
    constants on all that occurs.
    """
    known = correlations(fair.circuit, fair.distribution)
    transfer = all_transfers(
        case.circuit, tables(case.circuit, case.distribution), learned.circuit.levels[::-1]
    )
    found = []
    for level in range(1, case.circuit.depth):
        one = transfer[case.circuit.depth - level][:, :, 1]
        still = np.all(one <= 1e-12, axis=1) | np.all(one >= 1 - 1e-12, axis=1)
        found.append(still[(np.abs(known.c[level]) <= 1e-12) & (known.influence[level] > 0)])
    return float(np.mean(np.concatenate(found)))
