"""What malach2019 says and nothing here runs yet."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

NOT_RUN = (
    NotRun(
        id="malach2019/statistical-queries",
        where="Section 4.1, second paragraph",
        kind="bound",
        statement=(
            "Without local correlation no gradient-based algorithm with stochastic noise learns "
            "H: parities of log n bits alone take a number of gradient steps that grows like "
            "n^Ω(log n)."
        ),
        reason=(
            "it is quoted from work on statistical queries, and speaks of all algorithms as n "
            "grows; figure1 and no-correlation show two of them"
        ),
    ),
)
