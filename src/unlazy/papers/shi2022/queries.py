"""Claims on statistical queries: SQ dimension of sparse parities, elimination of parities by
queries, and learners with a query oracle.

Reference: shi2022, Section 4 (Theorem 4 and the remark after it), Appendix D.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.arms import Arm, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arms
from unlazy.lab.trials import ExactComputation, Record
from unlazy.learners.base import Learner
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import POINTS, Mode, QueryGradients, QueryOracle
from unlazy.networks.inits import AntisymmetricInit
from unlazy.papers.shi2022.gradients import generator
from unlazy.papers.shi2022.query_learners import CorrelationQueries, ParitySearch
from unlazy.probes.performance import PopulationAccuracy
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.patterns import LISTED
from unlazy.theory.statistical_queries import (
    correlations,
    parities,
    parity_dimension,
    queries_needed,
    query_dimension,
)


def _weights(D: int, rate: float) -> np.ndarray:
    """Return the probabilities of all 2^D inputs, in the order of `parities`, if every bit is 1
    with probability `rate`.
    """
    count = np.array(list(itertools.product((0, 1), repeat=D))).sum(axis=1)
    result: np.ndarray = rate**count * (1 - rate) ** (D - count)
    return result


class QueryDimension(ExactComputation):
    """SQ-DIM of all C(D, k) parities by Definition 31, from the correlations of all pairs over all
    inputs and a search for the largest clique.

    `share`: the dimension divided by C(D, k). `correlation`: maximum over pairs. `labels`: fraction
    of inputs on which the printed formula I[Σ_{j∈A} (1 − φ̃_j) is odd] equals the product of the
    signs. Bits are 1 with probability `rate`.
    """

    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    rate: float = eqx.field(static=True, default=0.5)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Return exact values; the key is not used."""
        concepts = parities(self.D, self.k)
        matrix = correlations(concepts.astype(float), _weights(self.D, self.rate))
        pairs = matrix[~np.eye(len(matrix), dtype=bool)]
        bits = np.array(list(itertools.product((0, 1), repeat=self.D)))
        printed = np.where((1 - bits[:, : self.k]).sum(axis=1) % 2 == 1, 1, -1)
        return {
            "share": query_dimension(matrix) / parity_dimension(self.D, self.k),
            "correlation": float(pairs.max()),
            "labels": float(np.mean(printed == concepts[0])),
        }


class Elimination(ExactComputation):
    """Number of queries that identify one of the C(D, k) parities if the oracle has tolerance
    τ = 2/C(D, k)^(1/3).

    The oracle answers as for a label independent of the input; a query excludes the parities whose
    answer differs by more than τ. The first query is Pr[y = +1]. Every later query is the
    majority of as many remaining parities as one query can exclude. `queries_over_needed`: number
    of queries until at most one parity is left, divided by ½·C(D, k)^(1/3). `most_at_once`: maximum
    number of parities excluded by one query, divided by its Parseval bound 1/(4τ²). Bits are 1 with
    probability `rate`.
    """

    D: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    rate: float = eqx.field(static=True, default=0.5)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        concepts = parities(self.D, self.k).astype(np.float32)
        weight = _weights(self.D, self.rate).astype(np.float32)
        count, rng = len(concepts), generator(key, self.D)
        tolerance = 1 / queries_needed(count)
        group = max(1, int(2 / (math.pi * (2 * tolerance) ** 2)))
        left, asked, largest = np.ones(count, bool), 0, 0
        while left.sum() > 1 and asked < 4 * count:
            majority = np.ones(concepts.shape[1], np.float32)
            if asked:
                chosen = rng.permutation(np.flatnonzero(left))[: group - (group + 1) % 2 or 1]
                majority = np.sign(concepts[chosen].sum(axis=0))
            # Pr[y = majority] differs from ½ by half the correlation.
            out = left & (np.abs(concepts @ (weight * majority)) / 2 > tolerance * (1 - 1e-6))
            left, asked, largest = left & ~out, asked + 1, max(largest, int(out.sum()))
        return {
            "queries_over_needed": asked / queries_needed(count),
            "most_at_once": largest * 4 * tolerance**2,
        }


#: (D, k) of the dimension and of the elimination.
EXACT: dict[Scale, tuple[tuple[int, int], tuple[int, int]]] = {
    "smoke": ((5, 3), (6, 3)),
    "laptop": ((10, 3), (12, 5)),
    "paper": ((12, 5), (14, 7)),
}


def theorem4(scale: Scale, rate: float = 0.5) -> dict[str, StudyArm]:
    """Return the SQ dimension, and the elimination of parities by queries."""
    dimension, elimination = EXACT[scale]
    return {
        "dimension": QueryDimension(*dimension, rate),
        "elimination": Elimination(*elimination, rate),
    }


classes, eliminated = arms("dimension", "elimination")
THEOREM4 = Claim(
    id="shi2022/theorem4",
    where="Theorem 4, Definition 31, Theorems 32 and 33 (Section 4, Appendix D)",
    kind="bound",
    statement=(
        "The k-sparse parities of D uniform bits have SQ-DIM ≥ C(D, k). So every algorithm in the "
        "statistical query model that learns the family without input structure to an error below "
        "1/2 − C(D, k)^(−3) needs at least ½·C(D, k)^(1/3) queries, or a tolerance τ with 1/τ "
        "at least that large."
    ),
    study=theorem4,
    checks=(
        classes.share.between(1.0, 1.0).by_paper().exactly(),
        (classes.correlation <= 1e-12).by_paper().exactly(),
        (classes.labels <= 0.0).by_construction().exactly(),
        (eliminated.queries_over_needed >= 1.0).by_paper().at("laptop", "paper"),
        (eliminated.most_at_once <= 1.0).at("laptop", "paper"),
    ),
    control=Control(
        "every bit is 1 with probability 0.97, so that parities are correlated",
        lambda scale: theorem4(scale, 0.97),
    ),
    min_seeds=1,
    **notes("shi2022/theorem4"),
)


Asker = Literal["correlation", "search", "descent"]


def query_descent(tolerance: float, mode: Mode, k: int) -> GradientDescent:
    """Return two steps with full decay, then gradient descent on both layers; every coordinate of
    every gradient is a query.
    """
    bias, m = 0.5, 10
    stages = (
        Descent({"w": 1.0}, steps=1, full_decay=("w",), smoothing=bias, spread=bias),
        Descent({"w": 1.0, "a": 1.0}, steps=1, full_decay=("w", "a"), smoothing=bias, spread=bias),
        Descent({"w": 0.3, "b": 0.3, "a": 15 / m}, steps=298),
    )
    init = AntisymmetricInit(m=m, w_scale=1 / k, b_scale=bias, a_scale=1.0)
    return GradientDescent(init, stages, source=QueryGradients.of(tolerance, mode))


def asking(learner: Asker, tolerance: float, mode: Mode, k: int) -> Learner:
    """Return a learner that accesses the data through an oracle."""
    if learner == "descent":
        return query_descent(tolerance, mode, k)
    return {"correlation": CorrelationQueries, "search": ParitySearch}[learner](
        QueryOracle.of(tolerance, mode), k
    )


def query_learning(
    learner: Asker, family: BalancedParity, inverses: tuple[int, ...], mode: Mode = "adversarial"
) -> Row:
    """Return accuracy, number of queries and `effort` over the inverse tolerance 1/τ.

    `effort`: the larger of the number of queries and 1/τ, divided by the lower bound without
    structure.
    """
    needed = queries_needed(parity_dimension(family.D, family.k))
    points = 1 << family.D if family.D <= LISTED else POINTS

    def effort(inverse: int, record: Record) -> dict[str, float]:
        return {"needed": needed, "effort": max(record.value("queries"), inverse) / needed}

    arms = {
        each: Arm(
            family, asking(learner, 1 / each, mode, family.k), points, (PopulationAccuracy(),)
        )
        for each in inverses
    }
    return Row(arms, after=effort)


def oracle(scale: Scale, swapped: bool = False) -> dict[str, StudyArm]:
    """Return learners with a query oracle, with and without input structure; the correlation
    learner at the size of Table 1.
    """
    tolerances = {"smoke": (10,), "laptop": (20, 50), "paper": (5, 10, 20, 50, 100)}[scale]

    def arm(
        learner: Asker, structured: bool, D: int, k: int, inverse: tuple[int, ...] = tolerances
    ) -> Row:
        if scale == "smoke":
            D, k = 6, 3
        structure = 0.5 if structured is not swapped else 0.0
        return query_learning(learner, BalancedParity(d=D, D=D, k=k, structure=structure), inverse)

    fine = tolerances if scale != "paper" else (5, 10, 20, 50)
    return {
        "correlation, D=100": arm("correlation", True, 100, 5),
        "correlation, D=100, w/o structure": arm("correlation", False, 100, 5),
        "descent, D=30": arm("descent", True, 30, 3, fine),
        "descent, D=30, w/o structure": arm("descent", False, 30, 3, fine),
    }


correlation, correlation_plain, descent, descent_plain = arms(
    "correlation, D=100",
    "correlation, D=100, w/o structure",
    "descent, D=30",
    "descent, D=30, w/o structure",
)
ORACLE = Claim(
    id="shi2022/theorem4-contrast",
    where="Section 4, remark after Theorem 4",
    kind="bound",
    statement=(
        "Without input structure, no polynomial algorithm in the statistical query model does "
        "better than guessing; with input structure, such algorithms learn. The comparison shows "
        "that the input structure is crucial for learning."
    ),
    study=oracle,
    checks=(
        (correlation.accuracy >= 99.9).for_share(0.5),
        (correlation.effort <= 1.0).by_construction().exactly(),
        (correlation_plain.accuracy <= 52.0).for_share(0.5),
        (descent.accuracy >= 98.0).for_share(0.5),
        (descent_plain.accuracy <= 60.0).for_share(0.5),
    ),
    control=Control(
        "the data with and without structure are exchanged", lambda scale: oracle(scale, True)
    ),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    plots=(
        Plot(
            title="Accuracy with a query oracle",
            x="inverse tolerance 1/τ",
            y="accuracy (%)",
            series=tuple(PlotLine(arm, "accuracy", arm) for arm in oracle("laptop")),
            log_x=True,
        ),
    ),
    **notes("shi2022/theorem4-contrast"),
)

QUERIES = (THEOREM4, ORACLE)
