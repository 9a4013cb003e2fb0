"""The lower bounds: fixed features, shift-invariant kernels, statistical queries.

Reference: shi2022, Section 4, Appendices C and D.
"""

from __future__ import annotations

from typing import Literal

from unlazy.lab.arms import Arm, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.rules import Check, Quantity, Scale
from unlazy.lab.trials import Record
from unlazy.learners.base import Learner
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import POINTS, Mode, QueryGradients, QueryOracle
from unlazy.networks.inits import MirroredInit
from unlazy.papers.shi2022.best_hinge import FixedFeatures, KernelBall
from unlazy.papers.shi2022.query_learners import CorrelationQueries, ParitySearch
from unlazy.probes.performance import LawAccuracy
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.patterns import LISTED
from unlazy.theory.statistical_queries import parity_dimension, queries_needed

FEATURES = ("random", "tangent", "fourier")


def theorem2(scale: Scale) -> dict[str, StudyArm]:
    """Three kinds of features, and k = 5 and 7 for the first."""
    sizes = (8, 16) if scale == "smoke" else (16, 64, 256)
    n = {"smoke": 200, "laptop": 2000, "paper": 8000}[scale]
    norms = (1.0, 4.0)
    arms: dict[str, StudyArm] = {f"{kind}, k=5": FixedFeatures(kind, 5, 80, sizes, norms, n=n) for kind in FEATURES}  # type: ignore[arg-type]
    return arms | {"random, k=7": FixedFeatures("random", 7, 112, sizes, norms, n=n)}


_THEOREM2_ARMS = (*(f"{kind}, k=5" for kind in FEATURES), "random, k=7")

THEOREM2 = Claim(
    id="shi2022/theorem2",
    where="Theorems 2, 28, 29 (Section 4, Appendix C)",
    kind="bound",
    statement=(
        "The best hinge loss of a linear model of norm B on N fixed features, whether random neurons, tangents or cosines, stays above "
        "po(1 − √(2N)·B/2^k) on the hardest A."
    ),
    study=theorem2,
    checks=tuple(
        check
        for arm in _THEOREM2_ARMS
        for check in (Check(Quantity(arm, "least_excess"), lower=0.0), Check(Quantity(arm, "gap"), upper=0.03))
    ),
    deviations=(
        "The theorem says that some A is hard: the harder of two random A is taken. The loss is the minimum over a sample, certified "
        "from below by a dual solution; that of the law is higher. `least_excess` is the least distance of the certified loss to the "
        "bound over all N and B.",
        "N = 1024 was tried with k = 7 and left out: there the loss stays 0.11 above the bound, but the solver's certificate only comes "
        "within 0.033 of the loss, and 0.03 is asked for.",
    ),
    plots=tuple(
        Plot(
            title=f"Hinge loss on fixed features, B = {B}",
            x="number of features N",
            y="hinge loss",
            series=(
                *(PlotLine(arm, f"loss, B={B}", arm) for arm in _THEOREM2_ARMS),
                PlotLine("random, k=5", f"bound, B={B}", "bound, k=5", theory=True),
                PlotLine("random, k=7", f"bound, B={B}", "bound, k=7", theory=True),
            ),
            log_x=True,
        )
        for B in (1, 4)
    ),
)


def corollary3(scale: Scale) -> dict[str, StudyArm]:
    """Functions of bounded norm in the space of a Gaussian kernel."""
    norms = (1, 2) if scale == "smoke" else (1, 2, 4)
    n = {"smoke": 100, "laptop": 1500, "paper": 3000}[scale]
    return {
        "Gaussian kernel, k=5": KernelBall(5, 80, norms, n=n),
        "Gaussian kernel, k=7": KernelBall(7, 112, norms, n=n),
    }


COROLLARY3 = Claim(
    id="shi2022/corollary3",
    where="Corollaries 3 and 30 (Section 4, Appendix C)",
    kind="bound",
    statement="The best hinge loss of a function of norm at most L in the space of a Gaussian kernel stays above po(1 − 2L/2^k).",
    study=corollary3,
    checks=tuple(
        check
        for arm in ("Gaussian kernel, k=5", "Gaussian kernel, k=7")
        for check in (Check(Quantity(arm, "least_excess"), lower=0.0), Check(Quantity(arm, "gap"), upper=0.03))
    ),
    deviations=(
        "The corollary's polynomial is made explicit: N → ∞ Fourier features give √(2N)·B → 2L. One random A; bandwidth 1, the root mean "
        "square length of an input.",
        "The minimum over a sample of n inputs lies below that of the law by the order of L/√n, so that larger norms need larger samples.",
    ),
    plots=(
        Plot(
            title="Hinge loss in the ball of a Gaussian kernel",
            x="norm L",
            y="hinge loss",
            series=(
                PlotLine("Gaussian kernel, k=5", "loss", "k=5"),
                PlotLine("Gaussian kernel, k=7", "loss", "k=7"),
                PlotLine("Gaussian kernel, k=5", "bound", "bound, k=5", theory=True),
                PlotLine("Gaussian kernel, k=7", "bound", "bound, k=7", theory=True),
            ),
            log_x=True,
        ),
    ),
)


Asker = Literal["correlation", "search", "descent"]


def query_descent(tolerance: float, mode: Mode, k: int, *, m: int = 10, steps: int = 300) -> GradientDescent:
    """Two weight-forgetting steps, then gradient descent on both layers, where every coordinate of every gradient is a query."""
    bias = 0.5
    stages = (
        Descent({"w": 1.0}, steps=1, forget=("w",), smoothing=bias, spread=bias),
        Descent({"w": 1.0, "a": 1.0}, steps=1, forget=("w", "a"), smoothing=bias, spread=bias),
        Descent({"w": 0.3, "b": 0.3, "a": 15 / m}, steps=steps - 2),
    )
    init = MirroredInit(m=m, w_scale=1 / k, b_scale=bias, a_scale=1.0)
    return GradientDescent(init, stages, source=QueryGradients.of(tolerance, mode))


def asking(learner: Asker, tolerance: float, mode: Mode, k: int) -> Learner:
    """A learner behind an oracle."""
    if learner == "descent":
        return query_descent(tolerance, mode, k)
    return {"correlation": CorrelationQueries, "search": ParitySearch}[learner](QueryOracle.of(tolerance, mode), k)


def query_learning(learner: Asker, family: BalancedParity, inverses: tuple[int, ...], mode: Mode = "adversarial") -> Row:
    """Accuracy, number of queries and the lower bound on it, over the inverse tolerance 1/τ."""
    needed = queries_needed(parity_dimension(family.D, family.k))
    points = 1 << family.D if family.D <= LISTED else POINTS

    def beside(inverse: int, record: Record) -> dict[str, float]:
        return {"needed": needed, "queries_over_needed": record.value("queries") / needed}

    arms = {each: Arm(family, asking(learner, 1 / each, mode, family.k), points, (LawAccuracy(),)) for each in inverses}
    return Row(arms, after=beside)


def theorem4(scale: Scale) -> dict[str, StudyArm]:
    """Learners behind an oracle, with and without input structure; the correlation learner also at the size of Table 1."""
    tolerances = {"smoke": (10,), "laptop": (20, 50), "paper": (5, 20, 50, 100)}[scale]

    def arm(learner: Asker, structure: float, D: int, k: int, mode: Mode = "adversarial", inverse: tuple[int, ...] = tolerances) -> Row:
        if scale == "smoke":
            D, k = 6, 3
        return query_learning(learner, BalancedParity(d=D, D=D, k=k, structure=structure), inverse, mode)

    last = tolerances[-1:]
    return {
        "correlation, D=100": arm("correlation", 0.5, 100, 5),
        "correlation, D=100, sampled": arm("correlation", 0.5, 100, 5, "sampled", last),
        "correlation, D=100, w/o structure": arm("correlation", 0.0, 100, 5),
        "descent, D=12": arm("descent", 0.5, 12, 3),
        "descent, D=12, sampled": arm("descent", 0.5, 12, 3, "sampled", last),
        "descent, D=12, w/o structure": arm("descent", 0.0, 12, 3),
        "search, D=12, w/o structure": arm("search", 0.0, 12, 3),
    }


THEOREM4 = Claim(
    id="shi2022/theorem4",
    where="Theorems 4, 31 to 33 (Section 4, Appendix D)",
    kind="bound",
    statement=(
        "Behind a statistical query oracle, data with input structure are learned with fewer queries and a coarser tolerance than any "
        "learner needs without it, ½·C(D, k)^(1/3); without it the same learners stay at chance, and only a search among all C(D, k) "
        "parities finds the label."
    ),
    study=theorem4,
    checks=(
        Check(Quantity("correlation, D=100", "accuracy"), lower=99.9),
        Check(Quantity("correlation, D=100", "queries_over_needed"), upper=0.9),
        Check(Quantity("correlation, D=100, sampled", "accuracy"), lower=99.9),
        Check(Quantity("correlation, D=100, w/o structure", "accuracy"), lower=47.0, upper=53.0),
        Check(Quantity("descent, D=12", "accuracy"), lower=98.0),
        Check(Quantity("descent, D=12, sampled", "accuracy"), lower=98.0),
        Check(Quantity("descent, D=12, w/o structure", "accuracy"), lower=40.0, upper=60.0),
        Check(Quantity("search, D=12, w/o structure", "accuracy"), lower=99.9),
    ),
    deviations=(
        "The oracle is adversarial within its tolerance unless 'sampled' is said. At D = 100 a sample of 20,000 inputs stands for the "
        "law, at D = 12 all inputs do with their exact weights. Gradients are queries after division by their greatest possible size. "
        "All learners are told the dictionary and ask about inputs by their coordinates in it; which patterns matter is hidden.",
        "At D = 12, k = 3 the bound is 3 queries: it says little there, and the failure without structure is the oracle's doing. It is "
        "not certain: with tens of thousands of queries gradient descent learns something of a parity of three on one of 48 seeds at "
        "1/τ = 50, and all of it on four of twelve at 1/τ = 100, which the bound does not forbid. So the check on it holds at laptop "
        "scale, whose finest tolerance is 1/50, by the odds of three seeds, and is undecided at paper scale.",
    ),
    plots=(
        Plot(
            title="Accuracy through the oracle",
            x="inverse tolerance 1/τ",
            y="accuracy (%)",
            series=tuple(
                PlotLine(arm, "accuracy", arm)
                for arm in (
                    "correlation, D=100",
                    "correlation, D=100, w/o structure",
                    "descent, D=12",
                    "descent, D=12, w/o structure",
                    "search, D=12, w/o structure",
                )
            ),
            log_x=True,
        ),
    ),
)

BOUNDS = (THEOREM2, COROLLARY3, THEOREM4)
