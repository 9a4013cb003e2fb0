"""Allen-Zhu, Li (2019), "What Can ResNet Learn Efficiently, Going Beyond Kernels?": what the ledger still owes to it."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

CITATION = "Z. Allen-Zhu, Y. Li. What Can ResNet Learn Efficiently, Going Beyond Kernels? NeurIPS 2019."

_WHY = "this paper's task and learner are not built yet"

NOT_RUN = (
    NotRun(
        "allenzhu2019/task",
        "Sections 2, 5, 7, 8.1",
        "task",
        "Targets H(x) = F(x) + αG(F(x)) with smooth F and G, among them pairwise products of 30 signs and degree-4 products of those.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/complexity",
        "Section 4, Fact A.3, Lemma A.2",
        "lemma",
        "Complexities of smooth functions from their Taylor series, and the norms and slopes that follow.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/learner",
        "Equation 2.1, Section 6, Algorithm 1",
        "learner",
        "A three-layer residual network, trained by gradient descent on its hidden layers.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/theorem1",
        "Theorem 1, Corollary 7.1",
        "figure",
        "The network learns such a target with a risk of the order α⁴.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/theorem2-3",
        "Theorems 2 and 3",
        "bound",
        "Kernels with fewer than about C(d, k) examples, and linear models on fewer features, have a risk above α²/16 for some such "
        "target.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/figure2a",
        "Figure 2(a)",
        "figure",
        "With 500 examples only the residual network falls below the error that the base signal leaves.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/figure2b",
        "Figure 2(b)",
        "figure",
        "The same with 1,000 examples and trained hidden layers.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/figure3",
        "Figure 3",
        "figure",
        "Learning fails once the composite signal is about as large as the base signal.",
        _WHY,
    ),
    NotRun(
        "allenzhu2019/figure4",
        "Figures 1 and 4, Section 8.2",
        "figure",
        "On a parity of degree 6 gradient descent finds no network that generalises, although one of small norm exists.",
        _WHY,
    ),
)
