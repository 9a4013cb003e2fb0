"""Statements of shi2022 that nothing here runs yet."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

_IMAGES = "it needs images, which are not built in yet"
NOT_RUN = (
    NotRun(
        "shi2022/figures17-19",
        "Figures 3, 17 to 19 (Appendix E.4)",
        "figure",
        "On MNIST, CIFAR-10 and SVHN weights form clusters.",
        _IMAGES,
    ),
    NotRun(
        "shi2022/table7", "Table 7, Figures 20, 21", "table", "Filters of a residual network gather alike on airplanes and cars.", _IMAGES
    ),
    NotRun(
        "shi2022/algorithm1", "Algorithm 1, Figure 26", "learner", "A student is trained on inputs whose structure was changed.", _IMAGES
    ),
    NotRun(
        "shi2022/figures22-25",
        "Figures 4, 22 to 25",
        "figure",
        "Accuracy falls as the structure of real inputs is replaced.",
        _IMAGES,
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
