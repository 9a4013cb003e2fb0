"""Daniely, Malach (2020), "Learning Parities with Neural Networks": what the ledger still owes to it."""

from __future__ import annotations

from unlazy.lab.claims import NotRun

CITATION = "A. Daniely, E. Malach. Learning Parities with Neural Networks. NeurIPS 2020."

_WHY = "this paper's task and learner are not built yet"

NOT_RUN = (
    NotRun(
        "daniely2020/task",
        "Section 2",
        "task",
        "Half of the inputs are uniform in {±1/√n}^n, in the other half all bits of a set A of odd size k are equal; the label is the "
        "parity of the bits of A.",
        _WHY,
    ),
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
        "daniely2020/theorem1",
        "Theorem 1",
        "bound",
        "A fixed embedding on which some linear function of bounded norm has a small hinge loss for every parity of k bits needs a "
        "dimension that is exponential in k.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma3-4",
        "Lemmas 3 and 4",
        "lemma",
        "For most neurons the gradient under the uniform part is small on all coordinates.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma5",
        "Lemma 5",
        "lemma",
        "On the structured part, the gradient of a neuron with Σ_A w = 0 vanishes on coordinates outside A.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma6",
        "Lemma 6",
        "lemma",
        "On coordinates of A that gradient is nearly the same for all of them.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma7",
        "Lemma 7",
        "lemma",
        "After one step a share of at least 1/(14√k) of the neurons is good.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma8-9",
        "Lemmas 8 and 9",
        "lemma",
        "Good neurons implement the functions that the parity is composed of.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma10",
        "Lemma 10",
        "lemma",
        "An explicit second layer on good neurons has margin at least 1 on every input.",
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
        "daniely2020/lemma12",
        "Lemma 12",
        "lemma",
        "After one step the second layer is at most k/√n.",
        _WHY,
    ),
    NotRun(
        "daniely2020/lemma13-14",
        "Lemmas 13 and 14",
        "lemma",
        "After step 1 the first layer hardly moves, and the loss changes little by it.",
        _WHY,
    ),
)
