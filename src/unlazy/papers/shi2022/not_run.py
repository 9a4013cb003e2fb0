"""Statements of shi2022 that nothing here runs yet."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

_IMAGES = "it needs images, which are not built in yet"
NOT_RUN = (
    NotRun(
        "shi2022/algorithm1", "Algorithm 1, Figure 26", "learner", "A student is trained on inputs whose structure was changed.", _IMAGES
    ),
    NotRun(
        id="shi2022/lemmas-general",
        where="Lemmas 36 to 48 (Appendix F.5 to F.8)",
        kind="lemma",
        statement=(
            "The lemmas on initialisation, first and second gradient carry over to an incoherent dictionary with noise, unequal "
            "classes and a dependent background, with ε_e and an error ν outside of the span of the patterns."
        ),
        reason="Their exact gradients need the law of a dependent background under correlated patterns, which nothing here has yet.",
    ),
)
