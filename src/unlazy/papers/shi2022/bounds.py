"""Claims on lower bounds for fixed features and shift-invariant kernels.

Reference: shi2022, Section 4, Appendix C.
"""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arms
from unlazy.papers.shi2022.best_hinge import FixedFeatures, KernelBall, Kind

#: Kinds of features to which Theorem 2 applies.
FEATURES: tuple[Kind, ...] = ("random", "tangent", "fourier")
#: Equal values on the controls refute one of up to six checks with seven seeds.
SEEDS: dict[Scale, int] = {"smoke": 1, "laptop": 7, "paper": 7}
SAMPLE: dict[Scale, int] = {"smoke": 200, "laptop": 800, "paper": 4000}


def theorem2(scale: Scale, told: bool = False) -> dict[str, StudyArm]:
    """Return three kinds of features on the mixture, k = 7, and random features on uniform bits.

    `told` (negative control): one of the features is the label.
    """
    sizes = {"smoke": (8, 16), "laptop": (16, 128), "paper": (16, 64, 256)}[scale]
    finer = {
        "smoke": (4, 16),
        "laptop": (4, 8, 16, 32, 64, 128),
        "paper": (4, 8, 16, 32, 64, 128, 256),
    }[scale]
    n, norms = SAMPLE[scale], (1.0, 4.0)

    def kind(honest: Kind) -> Kind:
        return "told" if told else honest

    arms: dict[str, StudyArm] = {
        f"{each}, k=5": FixedFeatures(kind(each), 5, 80, sizes, norms, n=n) for each in FEATURES
    }
    return arms | {
        "random, k=7": FixedFeatures(kind("random"), 7, 112, sizes, norms, n=n),
        "coins, k=5": FixedFeatures(kind("random"), 5, 80, sizes, norms, n=n, part="coins"),
        "coins, k=3": FixedFeatures(kind("random"), 3, 48, finer, (4.0,), n=3 * n, part="coins"),
        "coins, k=1": FixedFeatures(kind("random"), 1, 16, finer, (4.0,), n=3 * n, part="coins"),
    }


_MIXTURES = (*(f"{kind}, k=5" for kind in FEATURES), "random, k=7")
_BOUNDED = (*_MIXTURES, "coins, k=5")


def _of_theorem2(D: int, k: int) -> tuple[Condition, ...]:
    return (
        Condition("k ≤ D/16", lambda s: k, lambda s: D / 16, "≤"),
        Condition("k > 3 and odd", lambda s: k, lambda s: 5),
    )


three, one = arms("coins, k=3", "coins, k=1")
THEOREM2 = Claim(
    id="shi2022/theorem2",
    where="Theorems 2, 28, 29 (Section 4, Appendix C)",
    kind="bound",
    statement=(
        "Let Ψ: X → [−1, 1]^N be a data-independent feature map. If 3 < k ≤ D/16 and k is odd, "
        "there is a distribution of the family on which all models ⟨Ψ(x̃), w⟩ with ‖w‖₂ ≤ B have "
        "hinge loss at least po(1 − √(2N)B/2^k). On uniform bits, with y = Π_{i∈A} z_i, for some A "
        "every such model has hinge loss at least 1 − √(2N)B/2^k (k odd, k ≤ D/16). So for a "
        "nontrivial loss √N·B must be of order 2^k."
    ),
    study=theorem2,
    checks=(
        *((arm.least_excess >= 0.0).by_paper() for arm in arms(*_BOUNDED)),
        *(
            (arm.gap <= 0.03).by_construction()
            for arm in arms(*_BOUNDED, "coins, k=3", "coins, k=1")
        ),
        (three.needed - one.needed >= 4.0).for_share(0.5),
    ),
    conditions=_of_theorem2(80, 5),
    control=Control(
        "one of the features depends on A: it is the label", lambda scale: theorem2(scale, True)
    ),
    seeds=SEEDS,
    plots=tuple(
        Plot(
            title=f"Hinge loss on fixed features, B = {B}",
            x="number of features N",
            y="hinge loss",
            series=(
                *(PlotLine(arm, f"loss, B={B}", arm) for arm in _BOUNDED),
                PlotLine("random, k=5", f"bound, B={B}", "bound, k=5", theory=True),
                PlotLine("coins, k=5", f"bound, B={B}", "bound on uniform bits, k=5", theory=True),
            ),
            log_x=True,
        )
        for B in (1, 4)
    ),
    **notes("shi2022/theorem2"),
)


def corollary3(scale: Scale, told: bool = False) -> dict[str, StudyArm]:
    """Return functions of bounded norm in the RKHS of a Gaussian kernel, and combinations of
    kernels at fixed points.
    """
    norms = {"smoke": (1, 2), "laptop": (1, 4), "paper": (1, 2, 4)}[scale]
    n = {"smoke": 100, "laptop": 500, "paper": 4000}[scale]
    points = {"smoke": (8, 16), "laptop": (16, 128), "paper": (16, 64, 256)}[scale]
    return {
        "ball, k=5": KernelBall(5, 80, norms, n=n, told=told),
        "ball, k=7": KernelBall(7, 112, norms, n=n, told=told),
        "points, k=5": FixedFeatures("told" if told else "kernel", 5, 80, points, (1.0, 4.0), n=n),
        "points, k=7": FixedFeatures("told" if told else "kernel", 7, 112, points, (1.0, 4.0), n=n),
    }


_KERNELS = ("ball, k=5", "ball, k=7", "points, k=5", "points, k=7")

COROLLARY3 = Claim(
    id="shi2022/corollary3",
    where="Corollaries 3 and 30 (Section 4, Appendix C)",
    kind="bound",
    statement=(
        "Let f be a function of norm at most L in the RKHS of a shift-invariant kernel K, or f(x) "
        "= Σ_i α_i K(z_i, x) for some points z_i with ‖α‖₂ ≤ L. If 3 < k ≤ D/16 and k is odd, "
        "there is a distribution of the family on which f has hinge loss at least po(1 − poly(d, "
        "L)/2^k) − 1/poly(d, L)."
    ),
    study=corollary3,
    checks=(
        *(arm.least_excess >= 0.0 for arm in arms(*_KERNELS)),
        *((arm.gap <= 0.03).by_construction() for arm in arms(*_KERNELS)),
    ),
    conditions=_of_theorem2(80, 5),
    control=Control(
        "the kernel, or one of the features, depends on the label",
        lambda scale: corollary3(scale, True),
    ),
    seeds=SEEDS,
    plots=(
        Plot(
            title="Minimal hinge loss in the RKHS ball of a Gaussian kernel",
            x="norm L",
            y="hinge loss",
            series=(
                PlotLine("ball, k=5", "loss", "k=5"),
                PlotLine("ball, k=7", "loss", "k=7"),
                PlotLine("ball, k=5", "bound", "bound, k=5", theory=True),
                PlotLine("ball, k=7", "bound", "bound, k=7", theory=True),
            ),
            log_x=True,
        ),
    ),
    **notes("shi2022/corollary3"),
)

BOUNDS = (THEOREM2, COROLLARY3)
