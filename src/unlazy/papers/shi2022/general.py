"""Claims on the general setting: incoherent dictionary, noise, unequal classes, dependent
background.

Reference: shi2022, Appendix F.
"""

from __future__ import annotations

import math

from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms, shuffled
from unlazy.learners.base import Learner
from unlazy.papers.shi2022.computations import ExplicitGeneral
from unlazy.papers.shi2022.constants import theorem_34
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.papers.shi2022.probes import Incoherence
from unlazy.papers.shi2022.table1 import Size, curve_steps
from unlazy.probes.neurons import Alignment
from unlazy.probes.performance import Performance
from unlazy.tasks.dictionary.incoherent import GeneralParity

GENERAL: dict[Scale, Size] = {
    "smoke": Size(d=24, D=12, k=3, m=16, T=40, n=1_000, batch=100, test=500),
    "laptop": Size(d=200, D=80, k=5, m=100, T=600, n=20_000, batch=1_000, test=10_000),
    "paper": Size(d=500, D=100, k=5, m=300, T=600, n=50_000, batch=1_000, test=10_000),
}
#: Required loss ε.
EPSILON = 0.05


def general_task(size: Size) -> GeneralParity:
    """Return the general family: 70 % negative examples, background rates in [0.2, 0.5] that vary
    together by 0.1.
    """
    return GeneralParity(d=size.d, D=size.D, k=size.k)


def theorem34(scale: Scale) -> dict[str, StudyArm]:
    """Return the practical schedule and that of Theorem 34."""
    size = GENERAL[scale]
    family, steps = general_task(size), curve_steps(size.T)
    practical = TwoStep.practical(
        k=size.k, m=size.m, T=size.T, gamma=family.gamma, sigma=family.sigma, batch=size.batch
    )
    verbatim = TwoStep.general(
        k=size.k,
        m=size.m,
        T=size.T,
        D=size.D,
        gamma=family.gamma,
        sigma=family.sigma,
        p_min=min(family.negative, 1 - family.negative),
        batch=size.batch,
    )

    def arm(learner: Learner) -> Arm:
        return Arm(family, learner, size.n, (Performance(size.test), Alignment(), Incoherence()))

    return {
        "Network": arm(practical.network(steps)),
        "Two Step": arm(practical.frozen(2, steps)),
        "Network (Theorem 34)": arm(verbatim.network(steps)),
    }


def _rate(scale: Scale) -> float:
    """Return η⁽ᵗ⁾ of Theorem 34."""
    size = GENERAL[scale]
    family = general_task(size)
    return theorem_34(
        k=size.k, m=size.m, T=size.T, D=size.D, gamma=family.gamma, sigma=family.sigma, p_min=0.3
    ).rest


def _log_squared(scale: Scale) -> float:
    size = GENERAL[scale]
    delta = size.k**-3
    return math.log(size.D * size.m * size.d / (delta * general_task(size).gamma * 0.3)) ** 2


def _noise_allowed(scale: Scale) -> float:
    sigma = general_task(GENERAL[scale]).sigma
    return min(1 / sigma, sigma / math.sqrt(GENERAL[scale].d))


net, two_step, net34 = arms("Network", "Two Step", "Network (Theorem 34)")
THEOREM34 = Claim(
    id="shi2022/theorem34",
    where="Theorems 34 and 49 (Appendix F)",
    kind="figure",
    statement=(
        "Let η⁽¹⁾ = γ²p_minσ̃/(km³), η⁽²⁾ = 1, σ_ξ = k^(−3/2) in both steps, η⁽ᵗ⁾ = k²/(Tm^(1/3)) "
        "for t > 2, and δ ∈ (0, O(1/k³)). If μ ≤ O(√d/D), σ_ζ ≤ O(min(1/σ̃, σ̃/√d)), k = "
        "Ω(log²(Dmd/(δγp_min))) and m ≥ max(Ω(k⁴), D, d), then with probability at least 1 − δ "
        "there is a t ∈ [T] with Pr[sign(g⁽ᵗ⁾(x)) ≠ y] ≤ L(g⁽ᵗ⁾) = O(k⁸/m^(2/3) + k³T/m² + "
        "k²m^(2/3)/T). This is at most ε for T = m^(4/3) and m ≥ max(Ω(k¹²/ε^(3/2)), D)."
    ),
    study=theorem34,
    checks=(
        net.test_loss <= EPSILON,
        net.test_accuracy >= 99.0,
        net.cosine[2] >= 0.95,
        two_step.test_accuracy >= 95.0,
        net34.cosine[2] >= 0.95,
    ),
    conditions=(
        Condition("μ ≤ C·√d/D", net.mu, lambda s: math.sqrt(GENERAL[s].d) / GENERAL[s].D, "≤", "C"),
        Condition("Dμ/√d ≤ 1/16 (Lemma 36)", net.crowding, lambda s: 1 / 16, "≤"),
        Condition(
            "σ_ζ ≤ C·min(1/σ̃, σ̃/√d)",
            lambda s: general_task(GENERAL[s]).noise,
            _noise_allowed,
            "≤",
            "C",
        ),
        Condition(
            "k ≥ C·log²(Dmd/(δγp_min)), δ = 1/k³",
            lambda s: GENERAL[s].k,
            _log_squared,
            constant="C",
        ),
        Condition("m ≥ C·k⁴", lambda s: GENERAL[s].m, lambda s: GENERAL[s].k ** 4, constant="C"),
        Condition(
            "m ≥ max(D, d)",
            lambda s: GENERAL[s].m,
            lambda s: max(GENERAL[s].D, GENERAL[s].d),
        ),
        Condition(
            f"m ≥ C·k¹²/ε^(3/2), ε = {EPSILON:g}",
            lambda s: GENERAL[s].m,
            lambda s: GENERAL[s].k ** 12 / EPSILON**1.5,
            constant="C",
        ),
        Condition("T = m^(4/3)", lambda s: GENERAL[s].T, lambda s: GENERAL[s].m ** (4 / 3)),
        Condition(
            "step size of the first layer for t > 2 at most k²/(Tm^(1/3)) (arm Network)",
            lambda s: 0.3,
            _rate,
            "≤",
        ),
    ),
    control=shuffled(theorem34),
    **notes("shi2022/theorem34"),
)


#: Nearly orthogonal dictionaries with little noise, which meet the conditions of Lemma 35; and k.
NEARLY_ORTHOGONAL: dict[Scale, tuple[GeneralParity, tuple[int, ...]]] = {
    "smoke": (GeneralParity(d=40, D=20, k=3, coherence=0.001, noise=0.003), (3,)),
    "laptop": (GeneralParity(d=200, D=80, k=3, coherence=0.001, noise=0.003), (5, 9)),
    "paper": (GeneralParity(d=1000, D=200, k=3, coherence=0.0005, noise=0.003), (3, 5, 9)),
}


def lemma35(scale: Scale, height: int = 2) -> dict[str, StudyArm]:
    """Return the explicit network of the general setting."""
    family, counts = NEARLY_ORTHOGONAL[scale]
    return {
        "explicit network": ExplicitGeneral(
            family, counts, draws=2, examples=2_000 if scale == "smoke" else 10_000, height=height
        )
    }


explicit = arm("explicit network")
LEMMA35 = Claim(
    id="shi2022/lemma35",
    where="Lemma 35 (Appendix F.4)",
    kind="lemma",
    statement=(
        "If (kμ/√d)(poD/σ̃) ≤ 1/16, there is a network g* of 3(k + 1) neurons with |a_i*| ≤ 64k, "
        "1/(64k) ≤ |b_i*| ≤ 1/4 and w_i* = σ̃ Σ_{j∈A} M_j/(8k) such that Pr[y·g*(x) ≤ 1] ≤ "
        "exp(−Ω(k)) + exp(−Ω(1/(σ_ζ²(k + k²μ/√d)))). If kμ/√d < 1 and σ_ζ < 1/k, this is at most "
        "exp(−Ω(k))."
    ),
    study=lemma35,
    checks=(
        (explicit.below <= math.exp(-9)).by_paper(),
        (explicit.doubled <= 1.0).by_construction(),
        (explicit.largest_bias <= 1.0).by_construction(),
        (explicit.inverse_least_bias <= 1.0 + 1e-4).by_construction(),
    ),
    conditions=(
        Condition("(kμ/√d)(poD/σ̃) ≤ 1/16", explicit.crowding, lambda s: 1 / 16, "≤"),
        Condition("kμ/√d < 1", explicit.closeness, lambda s: 1.0, "≤"),
        Condition(
            "σ_ζ < 1/k",
            lambda s: NEARLY_ORTHOGONAL[s][0].noise,
            lambda s: 1 / max(NEARLY_ORTHOGONAL[s][1]),
            "≤",
        ),
    ),
    control=Control(
        "triangular bumps of half the height, as in the network of Lemma 5",
        lambda scale: lemma35(scale, 1),
    ),
    corrections=("shi2022/lemma35-weights",),
    **notes("shi2022/lemma35"),
)
