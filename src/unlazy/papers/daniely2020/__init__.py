"""Daniely, Malach (2020), "Learning Parities with Neural Networks".

unlazy reproduce 'daniely2020/*' --scale laptop
"""

from __future__ import annotations

import dataclasses

from unlazy.core.naming import Entry
from unlazy.papers.daniely2020.comparison import COMPARISON
from unlazy.papers.daniely2020.digits import CLAIM_DIGITS
from unlazy.papers.daniely2020.errata import ERRATA
from unlazy.papers.daniely2020.fixed_features import THEOREM1
from unlazy.papers.daniely2020.learner import ParitySchedule
from unlazy.papers.daniely2020.queries import STATISTICAL_QUERIES
from unlazy.papers.daniely2020.rows import ROWS
from unlazy.papers.daniely2020.separator_rows import SEPARATORS
from unlazy.papers.daniely2020.stacked_images import STACKED
from unlazy.papers.daniely2020.training import TRAINING
from unlazy.tasks.equal_bits import EqualBits

__all__ = ["BIBTEX", "CITATION", "CLAIMS", "EDITION", "ERRATA", "LEARNERS", "NOT_RUN", "TASKS"]

CITATION = (
    "A. Daniely, E. Malach. Learning Parities with Neural Networks. Preprint, 2020 (later edition: "
    "NeurIPS 2020)."
)
EDITION = (
    "The text we read is a preprint without date, venue or experiments, whose latest reference is "
    "of November 2019. The edition published at NeurIPS 2020 was not read; no erratum refers to "
    "it. One row has the settings of the authors' program (github.com/emalach/ParityNN). Formulas "
    "were read from extracted text, in which symbols may have been lost."
)
BIBTEX = """@misc{daniely2020,
  title = {Learning Parities with Neural Networks},
  author = {Daniely, Amit and Malach, Eran},
  howpublished = {Preprint},
  note = {Later edition: Advances in Neural Information Processing Systems 33},
  year = {2020}
}"""

CLAIMS = (
    *ROWS,
    *SEPARATORS,
    THEOREM1,
    *TRAINING,
    COMPARISON,
    STACKED,
    CLAIM_DIGITS,
    STATISTICAL_QUERIES,
)

TASKS = {
    "daniely2020/task": Entry(
        EqualBits(d=50, k=3),
        "half of the inputs are uniform bits; in the other half all bits of the parity are equal",
    ),
}

#: Practical schedule for the sizes of the task above.
_SCHEDULE = ParitySchedule.practical(n=50, k=3, q=128, T=2000, pace=1e4, layers="second")

LEARNERS = {
    "daniely2020/learner": Entry(
        _SCHEDULE.network(batch=256),
        "ternary pairs, one step with full decay, then gradient descent on the second layer; k = 3",
    ),
    "daniely2020/learner-both": Entry(
        dataclasses.replace(_SCHEDULE, layers="both", rate=15 / 128).network(batch=256),
        "the same with both layers trained after step 1",
    ),
    "daniely2020/learner-theorem": Entry(
        ParitySchedule.theorem(n=50, k=3, q=128, T=2000).network(),
        "the same with the step size and penalty of Theorem 2, whole sample",
    ),
    "daniely2020/one-step": Entry(
        _SCHEDULE.one_step(), "first layer frozen after step 1, ridge readout"
    ),
}

#: Every checkable statement has a claim.
NOT_RUN = ()
