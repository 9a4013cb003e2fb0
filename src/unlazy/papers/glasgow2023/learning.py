"""Claims of glasgow2023 on the task, the learner, training time and sample complexity."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from unlazy.kernels.base import ProductKernel
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NNGP, NTK
from unlazy.lab.arms import Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms, shuffled
from unlazy.lab.trials import Record
from unlazy.papers.glasgow2023.computations import LiteralStep, ReducedTimes, TaskFacts
from unlazy.papers.glasgow2023.growth import TimeToLoss
from unlazy.papers.glasgow2023.invariance import RotatedSteps, SeenOnInputs
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.papers.glasgow2023.sample_size import PredictedSizes, crossover, kernel_row, sgd_row
from unlazy.papers.glasgow2023.sizes import ONE_SEED, SIZES, Training, every, training
from unlazy.tasks.multi_index import MultiIndex, Terms, product

#: Label +1 if three coordinates are all +1, else −1, as the sign of a polynomial without constant.
ALL_THREE: Terms = tuple(
    (1.0, subset) for subset in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
)


def task(scale: Scale) -> dict[str, StudyArm]:
    """Return the enumeration of the task."""
    return {"XOR": TaskFacts(d={"smoke": 8, "laptop": 12, "paper": 14}[scale], precision=64)}


xor = arm("XOR")
TASK = Claim(
    id="glasgow2023/task",
    where="Section 2.1",
    kind="task",
    statement=(
        "For x uniform in {±1}^d and y = −x₁x₂ the label is balanced, and uncorrelated with every "
        "coordinate and with every product of two coordinates but one: leap 2."
    ),
    study=task,
    checks=(
        xor.mean_label.between(-1e-12, 1e-12).exactly(),
        (xor.single_correlation <= 1e-12).exactly(),
        (xor.pair_correlation >= 1 - 1e-12).exactly(),
        xor.correlated_pairs.between(1, 1).exactly(),
        xor.leap.between(2, 2).by_paper().exactly(),
        xor.information_exponent.between(2, 2).exactly(),
    ),
    control=Control(
        "the label is +1 if three coordinates are all +1",
        lambda s: {"XOR": TaskFacts(d=10, polynomial=ALL_THREE, precision=64)},
    ),
    seeds=ONE_SEED,
    min_seeds=1,
)


def learner(scale: Scale) -> dict[str, StudyArm]:
    """Return one step versus formulas, steps in two bases, and training on a rotated cube."""
    run = training(scale)
    family = SeenOnInputs(MultiIndex(d=run.d, rotated=True))
    return {
        "one step": LiteralStep(precision=64),
        "two bases": RotatedSteps(precision=64),
        "rotated cube": run.arm((0, run.length(18)), ErrorRate(SIZES[scale].test), family=family),
    }


def _wrong_steps(scale: Scale) -> dict[str, StudyArm]:
    return {
        **shuffled(learner).study(scale),
        "one step": LiteralStep(factor=1.5, precision=64),
        "two bases": RotatedSteps(optimizer="adam", precision=64),
    }


one_step, two_bases, rotated = arms("one step", "two bases", "rotated cube")
LEARNER = Claim(
    id="glasgow2023/learner",
    where="Section 2.2, Remark 2.1",
    kind="learner",
    statement=(
        "Minibatch SGD on both layers of a mean-field ReLU network (1/p)·Σ a_j·relu(⟨w_j, x⟩), "
        "w_j uniform on the sphere of radius θ and a_j = ±‖w_j‖, with p-scaled gradients of "
        "2·log(1 + e^{−yf}). Algorithm and initialization are rotation-invariant, so all results "
        "hold for a cube in any basis."
    ),
    study=learner,
    checks=(
        one_step.difference <= 1e-9,
        one_step.norm_error <= 1e-6,
        one_step.balance_error <= 1e-6,
        two_bases.difference <= 1e-9,
        rotated.error <= 0.01,
    ),
    control=Control(
        "formulas with 1.5 times the step, radius and second layer; Adam in two bases; shuffled "
        "labels",
        _wrong_steps,
    ),
    **notes("glasgow2023/learner"),
)


#: Training has CONSTANT·log(d)/η steps, of which RECORDED are recorded.
CONSTANT, RECORDED = 10.0, 80
#: C of Theorem 3.1 in the reduced dynamics, and its dimensions.
EXPONENT, HUGE = 3.0, (10**6, 10**9, 10**12, 10**15)


def literal(d: int, *, width: int = 128, printed: bool = False) -> Training:
    """Return the setting of Theorem 3.1 with C = 1: θ = η = 1/log d, m = d/θ.

    `printed`: the initial scale is θ/√p.
    """
    theta = 1 / math.log(d)
    return Training(
        d=d,
        width=width,
        radius=theta / math.sqrt(width) if printed else theta,
        step=theta,
        batch=math.ceil(d / theta),
    )


def theorem(scale: Scale) -> dict[str, StudyArm]:
    """Return the time to loss 0.1 by dimension, for both initial scales, and in high dimension."""
    size = SIZES[scale]

    def row(printed: bool) -> StudyArm:
        def arm(d: int) -> StudyArm:
            run = literal(d, width=64 if scale == "smoke" else 128, printed=printed)
            length = math.ceil(CONSTANT * math.log(d) / run.step)
            return run.arm(
                every(max(1, length // RECORDED), length),
                ErrorRate(min(size.test, 2048)),
                TimeToLoss(0.1, step=run.step),
            )

        return Row({d: arm(d) for d in size.times}, summaries=(_share_growth,), after=_at_the_end)

    return {"radius θ": row(False), "radius θ/√p": row(True), "C = 3": _reduced(scale)}


def _reduced(scale: Scale, second: float = 1.0) -> StudyArm:
    dimensions = HUGE[1:2] if scale == "smoke" else HUGE
    return ReducedTimes(dimensions, exponent=EXPONENT, second=second, precision=64)


def _wrong_theorem(scale: Scale) -> Mapping[str, StudyArm]:
    return dict(shuffled(theorem).study(scale)) | {"C = 3": _reduced(scale, second=0.0)}


def _at_the_end(d: int, record: Record) -> Mapping[str, float]:
    return {"final_loss": record.value("test_loss"), "final_error": record.value("error")}


def _share_growth(d: np.ndarray, row: Mapping[str, np.ndarray]) -> Mapping[str, float]:
    first, last = float(row["share"][0]), float(row["share"][-1])
    return {"share_growth": last / first if math.isfinite(first) else math.nan}


def _largest(scale: Scale) -> Training:
    return literal(SIZES[scale].times[-1])


large, small, consistent = arms("radius θ", "radius θ/√p", "C = 3")
THEOREM = Claim(
    id="glasgow2023/theorem",
    where="Theorem 3.1",
    kind="figure",
    statement=(
        "There is a constant C such that for d large enough, θ = 1/log^C(d), minibatches of m ≥ "
        "d/θ, width 1/θ ≤ p ≤ d^C, learning rate d^{−C} ≤ η ≤ θ and initial scale θ/√p, the "
        "population loss is o(1) after some t ≤ C·log(d)/η steps, with probability 1 − d^{−ω(1)}."
    ),
    study=theorem,
    checks=(
        large.share <= 6.0,
        small.share <= 8.0,
        *(arm.share_growth <= 1.1 for arm in (large, small)),
        *(arm.final_loss <= 0.05 for arm in (large, small)),
        *(arm.final_error <= 0.001 for arm in (large, small)),
        *((consistent.share[d] <= EXPONENT).by_paper() for d in HUGE[1:]),
        (consistent.share_printed[HUGE[-1]] <= EXPONENT).by_paper(),
    ),
    conditions=(
        Condition(
            "m ≥ d/θ", lambda s: _largest(s).batch, lambda s: _largest(s).d / _largest(s).radius
        ),
        Condition("η ≤ θ", lambda s: _largest(s).step, lambda s: _largest(s).radius, "≤"),
        Condition("p ≥ 1/θ", lambda s: _largest(s).width, lambda s: 1 / _largest(s).radius),
        Condition(
            "log(p)/log(d)",
            lambda s: math.log(_largest(s).width) / math.log(_largest(s).d),
            lambda s: 1.0,
            "≤",
            constant="C",
        ),
    ),
    asymptotic=(
        "C is both the exponent of θ = 1/log^C(d) and the bound on ηT/log(d), for d large enough. "
        "No network that can be trained here satisfies both: at θ = 1/log(d) ηT/log(d) is about "
        "4, and smaller θ lengthens training. In the reduced dynamics, C = 3 satisfies both from "
        "d = 10⁹ on (from 10¹⁵ on with the printed initial scale)"
    ),
    control=Control(
        "learners get shuffled labels; in the reduced dynamics, a frozen second layer",
        _wrong_theorem,
    ),
    plots=(
        Plot(
            "Time to a loss of 0.1",
            "dimension d",
            "η·T / log d",
            (
                PlotLine("radius θ", "share", "radius θ"),
                PlotLine("radius θ/√p", "share", "radius θ/√p"),
                PlotLine("C = 3", "share", "reduced dynamics, radius θ", theory=True),
                PlotLine("C = 3", "share_printed", "reduced dynamics, radius θ/√p", theory=True),
            ),
            log_x=True,
            caption="Theorem 3.1: at most C for d large enough. SGD: θ = 1/log d; reduced "
            "dynamics: θ = 1/log³ d.",
        ),
    ),
    **notes("glasgow2023/theorem"),
)


def scaling(scale: Scale) -> dict[str, StudyArm]:
    """Return sample sizes of SGD and kernels, and predictions for the NTK, which are only drawn."""
    size, target, width = (
        SIZES[scale],
        0.2 if scale == "smoke" else 0.05,
        64 if scale == "smoke" else 128,
    )

    def ridge(kernel: ProductKernel, dimensions: tuple[int, ...]) -> Row:
        return kernel_row(kernel, dimensions, target=target, test=size.test)

    return {
        "SGD": sgd_row(size.online, width=width, target=target, test=size.test),
        "NTK": ridge(NTK(), size.kernel),
        "NNGP": ridge(NNGP(), size.others),
        "quadratic kernel": ridge(Polynomial(2, 0.0), size.others),
        "NTK, predicted": PredictedSizes(NTK(), size.far, target=target),
    }


def predictions(scale: Scale) -> dict[str, StudyArm]:
    """Return the kernels of `scaling` with predictions, and SGD versus the NTK."""
    size, target, width = (
        SIZES[scale],
        0.2 if scale == "smoke" else 0.05,
        64 if scale == "smoke" else 128,
    )
    found = scaling(scale)
    del found["SGD"]
    return found | {
        "SGD and NTK": crossover(
            sgd_row(size.crossing, width=width, target=target, test=size.test),
            kernel_row(NTK(), size.crossing, target=target, test=size.test),
        ),
    }


def _null(scale: Scale) -> dict[str, StudyArm]:
    target, dimensions = 0.05, (32, 48)

    def ridge(kernel: ProductKernel) -> Row:
        return kernel_row(kernel, dimensions, target=target, test=1024)

    return {
        "SGD": sgd_row(dimensions, width=64, target=target, test=1024),
        "NTK": ridge(NTK()),
        "NNGP": ridge(NNGP()),
        "quadratic kernel": ridge(Polynomial(2, 0.0)),
        "NTK, predicted": PredictedSizes(
            NTK(), SIZES[scale].far[:3], target=target, polynomial=product(4)
        ),
    }


def _wrong_predictions(scale: Scale) -> dict[str, StudyArm]:
    rows = _null(scale)
    sgd = rows.pop("SGD")
    assert isinstance(sgd, Row) and isinstance(rows["NTK"], Row)
    return rows | {"SGD and NTK": crossover(sgd, rows["NTK"])}


network, ntk, nngp, quadratic, predicted, both = arms(
    "SGD", "NTK", "NNGP", "quadratic kernel", "NTK, predicted", "SGD and NTK"
)
SCALING = Claim(
    id="glasgow2023/scaling",
    where="Abstract, Section 1.1",
    kind="figure",
    statement=(
        "Standard minibatch SGD on a standard two-layer network learns XOR from d·polylog(d) "
        "examples, while the neural tangent kernel, and kernels in general, require order d²."
    ),
    study=scaling,
    checks=(
        network.exponent.between(1.0, 1.35),
        network.exponent_log.between(0.8, 1.1),
        ntk.exponent.between(1.75, 2.1),
        nngp.exponent.between(1.75, 2.1),
        quadratic.exponent.between(1.85, 2.15),
    ),
    control=shuffled(_null),
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
            caption="Kernels need fewer examples below d ≈ 50, SGD above. The dashed line is "
            "computed from the kernel's eigenvalues.",
        ),
    ),
    **notes("glasgow2023/scaling"),
)


PREDICTIONS = Claim(
    id="glasgow2023/kernel-predictions",
    where="Section 1.1",
    kind="figure",
    source="ours",
    statement=(
        "The number of examples that a kernel needs for XOR follows from its eigenvalues on the "
        "cube within 5 %, and by these the NTK needs order d² up to d = 10⁴. SGD (minibatches of "
        "d, θ = 0.3, η = 0.5) needs fewer than the NTK from a dimension between 40 and 63 on."
    ),
    study=predictions,
    checks=(
        predicted.exponent.between(1.95, 2.05).exactly(),
        both.crossover.between(40, 63),
        *(arm.ratio_lowest >= 0.95 for arm in (ntk, nngp, quadratic)),
        *(arm.ratio_highest <= 1.05 for arm in (ntk, nngp, quadratic)),
    ),
    control=shuffled(
        _wrong_predictions, "shuffled labels; for the prediction, the parity of four coordinates"
    ),
    **notes("glasgow2023/kernel-predictions"),
)
