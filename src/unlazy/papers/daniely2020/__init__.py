"""Daniely, Malach (2020), "Learning Parities with Neural Networks": parities that gradient descent learns and no fixed embedding expresses.

unlazy reproduce 'daniely2020/*' --scale laptop
"""

from __future__ import annotations

from unlazy.core.naming import Named
from unlazy.lab.claims import NotRun
from unlazy.papers.daniely2020.contest import CONTEST
from unlazy.papers.daniely2020.errata import ERRATA
from unlazy.papers.daniely2020.fixed_features import THEOREM1
from unlazy.papers.daniely2020.rows import CLAIMS as FIRST_STEP
from unlazy.tasks.equal_bits import EqualBits

__all__ = ["CITATION", "CLAIMS", "ERRATA", "NOT_RUN", "TASKS"]

CITATION = "A. Daniely, E. Malach. Learning Parities with Neural Networks. NeurIPS 2020."

CLAIMS = (*FIRST_STEP, THEOREM1, CONTEST)

TASKS = {
    "daniely2020/task": Named(
        EqualBits(d=50, k=3), "half of the inputs are uniform bits, in the other half all bits of the parity are equal"
    ),
}

_WHY = "the learner is not built yet"

NOT_RUN = (
    NotRun(
        "daniely2020/learner",
        "Section 2",
        "learner",
        "2q neurons with the activation min(max(z, 0), 6) from a symmetric ternary start, hinge loss with ridge penalties, gradient "
        "descent on the population: one step with η = 1, λ = 1/2, then small ones.",
        _WHY,
    ),
    NotRun(
        "daniely2020/theorem2",
        "Theorem 2",
        "figure",
        "Gradient descent finds a network whose error falls as q and T grow.",
        _WHY,
    ),
    NotRun(
        "daniely2020/theorem11",
        "Theorem 11",
        "lemma",
        "Online gradient descent has the stated regret.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma13-14",
        "Lemmas 13 and 14",
        "lemma",
        "After step 1 the first layer hardly moves, and the loss changes little by it.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma9",
        "Lemma 9",
        "lemma",
        "Good neurons implement the functions that the parity is composed of.",
        _WHY,
    ),
    NotRun(
        "daniely2020/digits",
        "beyond the text",
        "figure",
        "On the parity of the sum of stacked digits a trained network beats its tangent model, random features and tuned kernels.",
        "it needs images, which are not built in yet",
    ),
)
