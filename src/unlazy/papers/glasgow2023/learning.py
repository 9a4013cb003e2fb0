"""Claims of glasgow2023 on the task, the learner, and how many steps and examples are needed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from unlazy.kernels.base import ProductKernel
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NNGP, NTK
from unlazy.lab.arms import Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.rules import Check, Quantity, Scale
from unlazy.lab.trials import Record
from unlazy.papers.glasgow2023.below import below_the_bound
from unlazy.papers.glasgow2023.growth import TimeToLoss
from unlazy.papers.glasgow2023.instruments import LiteralStep, TaskFacts
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.papers.glasgow2023.sample_size import PredictedSizes, crossover, kernel_row, sgd_row
from unlazy.papers.glasgow2023.sizes import BATCH, FIVE, ONE_SEED, RADIUS, SIZES, THETA, Training, training


def task(scale: Scale) -> dict[str, StudyArm]:
    """The task, counted."""
    return {"XOR": TaskFacts(d=8 if scale == "smoke" else 12, precision=64)}


TASK = Claim(
    id="glasgow2023/task",
    where="Section 2.1",
    kind="task",
    statement=(
        "For x uniform in {±1}^d and y = −x₁x₂ the label is fair, uncorrelated with every coordinate and with every pair but one: leap 2."
    ),
    study=task,
    checks=(
        Check(Quantity("XOR", "mean_label"), lower=-1e-12, upper=1e-12),
        Check(Quantity("XOR", "single_correlation"), upper=1e-12),
        Check(Quantity("XOR", "pair_correlation"), lower=1 - 1e-12),
        Check(Quantity("XOR", "correlated_pairs"), lower=1, upper=1),
        Check(Quantity("XOR", "leap"), lower=2, upper=2),
        Check(Quantity("XOR", "information_exponent"), lower=2, upper=2),
    ),
    seeds=ONE_SEED,
    least_seeds=1,
)


def learner(scale: Scale) -> dict[str, StudyArm]:
    """A step beside the formulas, and the learner on a cube in an unknown basis."""
    return {
        "one step": LiteralStep(precision=64),
        "rotated cube": training(scale).arm((0, 20, 40, 60), ErrorRate(SIZES[scale].test), rotated=True),
    }


LEARNER = Claim(
    id="glasgow2023/learner",
    where="Section 2.2, Remark 2.1",
    kind="learner",
    statement=(
        "Minibatch SGD on both layers of a mean-field ReLU network from the sphere, with p-scaled gradients of 2·log(1 + e^{−yf}): a step "
        "of this learner is the paper's, and it learns XOR in any basis."
    ),
    study=learner,
    checks=(
        Check(Quantity("one step", "difference"), upper=1e-9),
        Check(Quantity("one step", "norm_error"), upper=1e-6),
        Check(Quantity("one step", "balance_error"), upper=1e-6),
        Check(Quantity("rotated cube", "error"), upper=0.01),
    ),
    deviations=(
        "The factors p and 2 of gradient and loss are absorbed in the step sizes; the steps are the same.",
        "Training runs in the coordinates of the rotated cube, which is the same algorithm, since it commutes with rotations.",
        THETA,
    ),
)


#: Training lasts C·log(d)/η steps with this C, and is looked at so many times.
CONSTANT, LOOKS = 8.0, 64


def theorem(scale: Scale) -> dict[str, StudyArm]:
    """Time to a small loss, over dimensions."""
    size = SIZES[scale]

    def arm(d: int) -> StudyArm:
        run = Training(d=d, width=64 if scale == "smoke" else 256)
        length = round(CONSTANT * math.log(d) / run.step)
        record = tuple(sorted({round(i * length / LOOKS) for i in range(LOOKS + 1)}))
        return run.arm(record, ErrorRate(min(size.test, 2048)), TimeToLoss(0.1, step=run.step))

    return {"SGD": Row({d: arm(d) for d in size.times}, summaries=(_share_growth,), after=_at_the_end)}


def _at_the_end(d: int, record: Record) -> Mapping[str, float]:
    return {"final_loss": record.value("test_loss"), "final_error": record.value("error")}


def _share_growth(d: np.ndarray, row: Mapping[str, np.ndarray]) -> Mapping[str, float]:
    first, last = float(row["share"][0]), float(row["share"][-1])
    return {"share_growth": last / first if math.isfinite(first) else math.nan}


THEOREM = Claim(
    id="glasgow2023/theorem",
    where="Theorem 3.1",
    kind="figure",
    statement="The population loss goes to zero within C·log(d)/η steps, with one constant C for all dimensions.",
    study=theorem,
    checks=(
        Check(Quantity("SGD", "share"), upper=6.0),
        Check(Quantity("SGD", "share_growth"), upper=1.1),
        Check(Quantity("SGD", "final_loss"), upper=0.05),
        Check(Quantity("SGD", "final_error"), upper=0.001),
    ),
    deviations=(RADIUS, BATCH, THETA, "'Loss o(1)' is read as 0.1 for the time, and as 0.05 at the end, after 8·log(d)/η steps."),
    plots=(
        Plot(
            "Time to a loss of 0.1",
            "dimension d",
            "η·T / log d",
            (PlotLine("SGD", "share", "SGD, both layers"),),
            log_x=True,
            caption="By Theorem 3.1 this stays below a constant.",
        ),
    ),
)


def scaling(scale: Scale) -> dict[str, StudyArm]:
    """Sample sizes of SGD and of kernels, and what theory predicts of the kernels."""
    size, target, width = SIZES[scale], 0.2 if scale == "smoke" else 0.05, 64 if scale == "smoke" else 128

    def sgd(dimensions: tuple[int, ...]) -> Row:
        return sgd_row(dimensions, width=width, target=target, test=size.test)

    def ridge(kernel: ProductKernel, dimensions: tuple[int, ...]) -> Row:
        return kernel_row(kernel, dimensions, target=target, test=size.test)

    return {
        "SGD": sgd(size.online),
        "NTK": ridge(NTK(), size.kernel),
        "NNGP": ridge(NNGP(), size.others),
        "quadratic kernel": ridge(Polynomial(2, 0.0), size.others),
        "NTK, predicted": PredictedSizes(NTK(), size.far, target=target),
        "SGD and NTK": crossover(sgd(size.crossing), ridge(NTK(), size.crossing)),
    }


SCALING = Claim(
    id="glasgow2023/scaling",
    where="Theorem 3.1, Section 1.1",
    kind="figure",
    statement=(
        "SGD learns XOR from d·polylog(d) examples, kernels need of the order of d²: exponents of the number of examples that bring the "
        "test error to 5 %, the dimension where SGD begins to need fewer, and the kernels' numbers beside their prediction."
    ),
    study=scaling,
    checks=(
        Check(Quantity("SGD", "exponent"), lower=1.0, upper=1.35),
        Check(Quantity("SGD", "exponent_log"), lower=0.8, upper=1.1),
        Check(Quantity("NTK", "exponent"), lower=1.75, upper=2.1),
        Check(Quantity("NNGP", "exponent"), lower=1.75, upper=2.1),
        Check(Quantity("quadratic kernel", "exponent"), lower=1.85, upper=2.15),
        Check(Quantity("NTK, predicted", "exponent"), lower=1.95, upper=2.05),
        Check(Quantity("SGD and NTK", "crossover"), lower=40, upper=63),
        *(Check(Quantity(arm, "ratio_lowest"), lower=0.95) for arm in ("NTK", "NNGP", "quadratic kernel")),
        *(Check(Quantity(arm, "ratio_highest"), upper=1.05) for arm in ("NTK", "NNGP", "quadratic kernel")),
    ),
    deviations=(
        "Minibatches of d examples, θ = 0.3, η = 0.5, p = 128.",
        "The number of examples is where the error on fresh examples first falls to 5 % and stays there for three looks.",
        "Kernels are nearly ridgeless (ridge 1e-6 of the kernel's diagonal).",
        "Errors of kernels are averaged over up to 12 draws of some 8,000 examples together.",
    ),
    seeds=FIVE,
    plots=(
        Plot(
            "Examples to 5 % error",
            "dimension d",
            "examples",
            (
                PlotLine("SGD", "samples", "SGD, both layers"),
                PlotLine("NTK", "samples", "NTK"),
                PlotLine("NNGP", "samples", "NNGP"),
                PlotLine("quadratic kernel", "samples", "quadratic kernel"),
                PlotLine("NTK, predicted", "samples", "NTK, predicted", theory=True),
            ),
            log_x=True,
            log_y=True,
            caption="Kernels need fewer examples below d ≈ 50, SGD above; the dashed line is computed from the kernel's eigenvalues.",
        ),
    ),
)


def lowerbound(scale: Scale) -> dict[str, StudyArm]:
    """Learners with too few examples."""
    size = SIZES[scale]
    return {"n = d/log² d": below_the_bound(size.below, test=size.test, length=20 if scale == "smoke" else 100)}


LOWERBOUND = Claim(
    id="glasgow2023/lowerbound",
    where="Proposition F.1",
    kind="bound",
    statement="Rotation-invariant learners with fewer than d/log² d examples err on at least 3 % of the inputs.",
    study=lowerbound,
    checks=(
        Check(Quantity("n = d/log² d", "bound"), lower=0.03),
        *(Check(Quantity("n = d/log² d", measure), lower=0.03) for measure in ("ntk_error", "quadratic_error", "sgd_error")),
    ),
    deviations=(
        "The proof's constants are written out: the bound is vacuous below d ≈ 1000 and 3.75 % above; the learners measured err near 50 %.",
    ),
)
