"""Shi, Wei, Liang (2022), "A Theoretical Analysis on Feature Learning in Neural Networks".

unlazy reproduce 'shi2022/*' --scale laptop
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from unlazy.core.naming import Deferred, Entry
from unlazy.learners.base import Learner
from unlazy.papers.shi2022.bounds import BOUNDS
from unlazy.papers.shi2022.classifier import CLASSIFIER
from unlazy.papers.shi2022.discrepancies import DISCREPANCIES
from unlazy.papers.shi2022.errata import ERRATA
from unlazy.papers.shi2022.filters import TABLE7
from unlazy.papers.shi2022.general import GENERAL, LEMMA35, THEOREM34, general_task
from unlazy.papers.shi2022.general_lemmas import GENERAL_LEMMAS
from unlazy.papers.shi2022.images import FIGURE19, FIGURES17_18
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.papers.shi2022.lemmas import LEMMAS
from unlazy.papers.shi2022.mixtures import MIXTURES, REPRESENTATIONS, representation_task
from unlazy.papers.shi2022.queries import QUERIES
from unlazy.papers.shi2022.rows import ROWS
from unlazy.papers.shi2022.schedule import SCHEDULES
from unlazy.papers.shi2022.structure import STRUCTURE
from unlazy.papers.shi2022.table1 import PARITY, TABLE1, practical, verbatim
from unlazy.papers.shi2022.tables import TABLES
from unlazy.papers.shi2022.teacher_size import ALGORITHM1
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.patterns import (
    ParityMixture,
    ProductPatterns,
    UnstructuredPatterns,
    interval,
    parity,
    threshold,
)
from unlazy.tasks.gaussians import CubeGaussians

CITATION = (
    "Z. Shi, J. Wei, Y. Liang. A Theoretical Analysis on Feature Learning in Neural Networks: "
    "Emergence from Inputs and Advantage over Fixed Features. ICLR 2022."
)
EDITION = (
    "The text we read has Appendices A to F and names no venue or date; no other edition was "
    "compared. It was extracted from a PDF file: symbols may have been lost, and figures were not "
    "seen, except for their captions."
)
BIBTEX = """@inproceedings{shi2022,
  title = {A Theoretical Analysis on Feature Learning in Neural Networks: Emergence from Inputs
    and Advantage over Fixed Features},
  author = {Shi, Zhenmei and Wei, Junyi and Liang, Yingyu},
  booktitle = {International Conference on Learning Representations},
  year = {2022}
}"""

CLAIMS = (
    TABLE1,
    *TABLES,
    *MIXTURES,
    *LEMMAS,
    *CLASSIFIER,
    *BOUNDS,
    *QUERIES,
    THEOREM34,
    LEMMA35,
    *GENERAL_LEMMAS,
    *ROWS,
    *SCHEDULES,
    FIGURES17_18,
    FIGURE19,
    *STRUCTURE,
    TABLE7,
    ALGORITHM1,
)

__all__ = [
    "BIBTEX",
    "CITATION",
    "CLAIMS",
    "DISCREPANCIES",
    "EDITION",
    "ERRATA",
    "LEARNERS",
    "TASKS",
]

TASKS = {
    "shi2022/task": Entry(
        ParityMixture(d=500, D=100, k=5, po=0.5),
        "Table 1: mixture of uniform bits and all-equal relevant patterns, parity labels",
    ),
    "shi2022/task-interval": Entry(
        ProductPatterns(d=500, D=100, k=30, P=interval(30, 20, 30), p=2 / 3, po=0.5),
        "Table 2: independent patterns, interval labels",
    ),
    "shi2022/task-threshold": Entry(
        ProductPatterns(d=500, D=100, k=5, P=threshold(5), p=0.5, po=0.5),
        "Example 1: independent patterns, majority of the relevant ones",
    ),
    "shi2022/task-unstructured": Entry(
        UnstructuredPatterns(d=500, D=100, k=5, P=parity(5)),
        "(A1'): all patterns are uniform bits, parity labels",
    ),
    "shi2022/task-imbalanced": Entry(
        BalancedParity(d=500, D=100, k=5, structure=0.5, negative=0.8),
        "Table 4: the data of Table 1, 80 % in the negative class",
    ),
    "shi2022/task-representations": Entry(
        representation_task(REPRESENTATIONS["paper"]),
        "Figure 15: fifty hidden vectors per label",
    ),
    "shi2022/task-gaussians": Entry(
        CubeGaussians(d=100, k=4, spread=1.0),
        "Table 6: Gaussian mixture at the vertices of a cube, parity labels",
    ),
    "shi2022/task-general": Entry(
        general_task(GENERAL["paper"]),
        "Appendix F: incoherent dictionary, noise, unequal classes, dependent background with "
        "unequal rates",
    ),
}


@functools.cache
def _schedule() -> TwoStep:
    return practical(PARITY["paper"])


def _learner(make: Callable[[TwoStep], Learner]) -> Deferred:
    return Deferred(lambda: make(_schedule()))


LEARNERS = {
    "shi2022/learner": Entry(
        _learner(lambda schedule: schedule.network()),
        "two-layer network, two steps with full decay, then a classifier; practical settings",
    ),
    "shi2022/learner-theorem26": Entry(
        Deferred(lambda: verbatim(PARITY["paper"]).network()),
        "the same with the constants of Theorem 26",
    ),
    "shi2022/one-step": Entry(
        _learner(lambda schedule: schedule.frozen(1)),
        "first layer frozen after step 1, SGD readout",
    ),
    "shi2022/one-step-converged": Entry(
        _learner(lambda schedule: schedule.frozen(1, readout="converged")),
        "first layer frozen after step 1, ridge readout",
    ),
    "shi2022/two-step": Entry(
        _learner(lambda schedule: schedule.frozen(2)),
        "first layer frozen after step 2, SGD readout",
    ),
    "shi2022/two-step-converged": Entry(
        _learner(lambda schedule: schedule.frozen(2, readout="converged")),
        "first layer frozen after step 2, ridge readout",
    ),
    "shi2022/random-features": Entry(
        _learner(lambda schedule: schedule.random_features()),
        "first layer frozen at initialization, SGD readout",
    ),
    "shi2022/ntk": Entry(
        _learner(lambda schedule: schedule.tangent()), "network linearized at initialization, SGD"
    ),
}
