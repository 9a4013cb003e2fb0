"""Statements of malach2019 that are not run."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

NOT_RUN = (
    NotRun(
        id="malach2019/statistical-queries",
        where="Section 4.1, second paragraph",
        kind="bound",
        statement=(
            "Without local correlation no gradient-based algorithm with stochastic noise learns "
            "H: for parities of log n bits alone the number of gradient steps grows like "
            "n^Ω(log n)."
        ),
        reason=(
            "quoted from work on statistical queries; it concerns all algorithms as n grows, of "
            "which figure1 and no-correlation test two"
        ),
    ),
)
