"""Statements of shi2022 without a claim."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

NOT_RUN = (
    NotRun(
        id="shi2022/lemmas-general",
        where="Lemmas 36 to 48 (Appendix F.5 to F.8)",
        kind="lemma",
        statement=(
            "The lemmas on initialization, first and second gradient extend to an incoherent "
            "dictionary with noise, unequal classes and a dependent background, with ε_e and an "
            "error ν outside the span of the patterns."
        ),
        reason="Their exact gradients need the distribution of a dependent background under "
        "correlated patterns, which is not implemented.",
    ),
)
