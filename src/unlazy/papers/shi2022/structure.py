"""Figures 22 to 25: a student on a mixture of real and injected inputs, labeled by a teacher.

Reference: shi2022, Figure 4 and Appendix E.5.2, E.5.3.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Check, Control, Scale, arm, arms
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.base import Init
from unlazy.networks.image_resnet import ImageResNetInit
from unlazy.networks.inits import PlainInit
from unlazy.papers.shi2022.injected import GAUSSIAN, InjectedImages, PartAccuracies, TeacherDescent

#: Trained groups of FC(m) and of ResNet(m).
DENSE, RESIDUAL = ("w", "b", "a", "c"), ("stem", "filters", "norms", "a", "c")
#: Weight λ in the regularizer R₁ + λ·R₂.
TRADE = 0.5


class Setting(NamedTuple):
    """Filters or neurons, steps and examples of teacher (`teacher`, `taught_steps`, `taught`) and
    student; batch; test examples; image side in pixels.
    """

    teacher: int
    student: int
    taught_steps: int
    steps: int
    batch: int
    taught: int
    n: int
    test: int
    side: int | None = None


MNIST_SETTINGS: dict[Scale, Setting] = {
    "smoke": Setting(3, 3, 10, 10, 20, 100, 100, 50),
    "laptop": Setting(9, 9, 1_000, 1_000, 100, 20_000, 10_000, 2_000),
    "paper": Setting(9, 9, 10_000, 10_000, 100, 120_000, 60_000, 10_000),
}
COLOR_SETTINGS: dict[Scale, Setting] = {
    "smoke": Setting(1, 2, 4, 4, 8, 40, 40, 20, 8),
    "laptop": Setting(5, 9, 200, 200, 64, 10_000, 6_400, 500, 16),
    "paper": Setting(5, 9, 8_000, 8_000, 128, 100_000, 50_000, 5_000),
}
#: Dataset, m of the teacher and m of the student in ResNet(m), as published.
RESNETS = {"CIFAR-10": ("cifar10", 5, 9), "SVHN": ("svhn", 2, 8)}


def quadratic(m: int, d: int) -> PlainInit:
    """Return FC(m): one hidden layer of m neurons with quadratic activation."""
    return PlainInit(
        m=m,
        w_scale=1 / math.sqrt(d),
        b_scale=0.0,
        a_scale=1 / (3 * math.sqrt(m)),
        activation="quadratic",
    )


def _descent(
    kind: type[Descent], groups: tuple[str, ...], rate: float, steps: int, batch: int, **more: Any
) -> Descent:
    return kind(
        {group: rate for group in groups},
        steps=steps,
        batch=batch,
        loss="softmax",
        optimizer="adam",
        **more,
    )


def taught_by(
    init: Init, groups: tuple[str, ...], rate: float, steps: int, batch: int
) -> GradientDescent:
    """Return the training of a teacher."""
    return GradientDescent(
        init, (_descent(TeacherDescent, groups, rate, steps, batch, trade=TRADE),)
    )


def student(
    init: Init, groups: tuple[str, ...], rate: float, steps: int, batch: int
) -> GradientDescent:
    """Return the training of a student, with recorded steps for the curves."""
    record = tuple(sorted({0, *(round(steps * fraction) for fraction in (0.05, 0.1, 0.25, 0.5))}))
    return GradientDescent(init, (_descent(Descent, groups, rate, steps, batch),), record=record)


def _digits_arm(scale: Scale, m: int, alpha: float, injected: str = GAUSSIAN) -> Arm:
    size, d, rate = MNIST_SETTINGS[scale], 784, 1e-3
    teacher = taught_by(quadratic(size.teacher, d), DENSE, rate, size.taught_steps, size.batch)
    family = InjectedImages(
        "mnist", injected=injected, alpha=alpha, teacher=teacher, taught=size.taught, flat=True
    )
    learner = student(quadratic(m, d), DENSE, rate, size.steps, size.batch)
    return Arm(family, learner, size.n, (PartAccuracies(size.test),))


def _color_arm(scale: Scale, name: str, alpha: float, injected: str) -> Arm:
    data, m_teacher, m_student = RESNETS[name]
    size, rate = COLOR_SETTINGS[scale], 2e-3
    if scale == "smoke":
        m_teacher, m_student = size.teacher, size.student
    teacher = taught_by(ImageResNetInit(m_teacher), RESIDUAL, rate, size.taught_steps, size.batch)
    family = InjectedImages(
        data,
        injected=injected,
        alpha=alpha,
        teacher=teacher,
        taught=size.taught,
        side=size.side,
        balanced=True,
    )
    learner = student(ImageResNetInit(m_student), RESIDUAL, rate, size.steps, size.batch)
    return Arm(family, learner, size.n, (PartAccuracies(size.test),))


#: Fractions of injected inputs; 0 is training on the original inputs.
ALPHAS = (0.0, 0.25, 0.5, 0.75)


def _mixture(name: str, alpha: float, injected: str = "Gaussian") -> str:
    return f"{name}, original" if alpha == 0 else f"{name} + {injected}, α = {alpha:g}"


def digits_mixed(scale: Scale) -> dict[str, StudyArm]:
    """Return MNIST with Gaussians, for students of two sizes."""
    wide = 5 if scale == "smoke" else 50
    narrow: dict[str, StudyArm] = {
        _mixture("MNIST", alpha): _digits_arm(scale, MNIST_SETTINGS[scale].student, alpha)
        for alpha in (0.0, 0.5)
    }
    return narrow | {
        _mixture("MNIST, m = 50", alpha): _digits_arm(scale, wide, alpha) for alpha in (0.0, 0.5)
    }


def colors_mixed(scale: Scale, name: str) -> dict[str, StudyArm]:
    """Return color images mixed with Gaussians (CIFAR-10: several fractions) and Tiny ImageNet."""
    alphas = ALPHAS if name == "CIFAR-10" else (0.0, 0.5)
    gaussian: dict[str, StudyArm] = {
        _mixture(name, alpha): _color_arm(scale, name, alpha, GAUSSIAN) for alpha in alphas
    }
    return gaussian | {
        _mixture(name, 0.5, "Tiny ImageNet"): _color_arm(scale, name, 0.5, "tinyimagenet")
    }


def mixed(scale: Scale) -> dict[str, StudyArm]:
    """Return the arms of MNIST and CIFAR-10."""
    return {**digits_mixed(scale), **colors_mixed(scale, "CIFAR-10")}


def _with_itself(study: dict[str, StudyArm]) -> dict[str, StudyArm]:
    """Return the same arms with images of the same dataset injected."""
    changed: dict[str, StudyArm] = {}
    for name, each in study.items():
        assert isinstance(each, Arm) and isinstance(each.family, InjectedImages)
        changed[name] = dataclasses.replace(
            each, family=dataclasses.replace(each.family, injected=each.family.data)
        )
    return changed


def _gap(name: str, lower: float) -> Check:
    """Check that the original part is learned better than the injected one."""
    return arm(name).original_accuracy - arm(name).injected_accuracy >= lower


def _color_checks(name: str, alphas: tuple[float, ...]) -> tuple[Check, ...]:
    half, tiny, original = arms(
        _mixture(name, 0.5),
        _mixture(name, 0.5, "Tiny ImageNet"),
        _mixture(name, 0.0),
    )
    return (
        *(_gap(_mixture(name, alpha), 5.0) for alpha in alphas),
        (half.original_accuracy - original.original_accuracy >= -10.0).refuting(),
        half.whole_accuracy - original.whole_accuracy <= -2.0,
        tiny.injected_accuracy - half.injected_accuracy >= 2.0,
    )


def _part_plots(names: tuple[str, ...]) -> tuple[Plot, ...]:
    return tuple(
        Plot(
            title=f"{name}: accuracy on each part",
            x="gradient step",
            y="accuracy (%)",
            series=tuple(
                PlotLine(name, f"{part}_accuracy", part)
                for part in ("original", "injected", "whole")
            ),
        )
        for name in names
    )


FIGURES22_25 = Claim(
    id="shi2022/figures22-25",
    where="Figures 4, 22 to 25 (Section 6, Appendix E.5.2, E.5.3)",
    kind="figure",
    statement=(
        "On an equal mixture of CIFAR-10 images and Gaussians, labeled by a teacher, a student "
        "learns the images about as well as without the Gaussians, and the Gaussian part slower "
        "and worse, so accuracy on the mixture is below that of training on the original data. "
        "Other mixing fractions give the same trend. The Tiny ImageNet part is learned better than "
        "the Gaussian part. On MNIST with 50 neurons the MNIST part is learned better than the "
        "Gaussian part."
    ),
    study=mixed,
    checks=(_gap(_mixture("MNIST, m = 50", 0.5), 2.0), *_color_checks("CIFAR-10", ALPHAS[1:])),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    control=Control(
        "the injected inputs are images of the same dataset",
        lambda scale: _with_itself(
            {
                name: arm
                for name, arm in mixed(scale).items()
                if "α = 0.5" in name or "CIFAR-10, original" in name
            }
        ),
    ),
    plots=_part_plots(
        (
            _mixture("MNIST, m = 50", 0.5),
            _mixture("CIFAR-10", 0.5),
            _mixture("CIFAR-10", 0.5, "Tiny ImageNet"),
        )
    ),
    **notes("shi2022/figures22-25"),
)

FIGURES22_23_SVHN = Claim(
    id="shi2022/figures22-23-svhn",
    where="Figures 22(c), 23(b) (Appendix E.5.2)",
    kind="figure",
    statement="On SVHN mixed with Gaussians or with Tiny ImageNet, the trends are those of "
    "CIFAR-10.",
    study=lambda scale: colors_mixed(scale, "SVHN"),
    checks=_color_checks("SVHN", (0.5,)),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    control=Control(
        "the injected inputs are images of the same dataset",
        lambda scale: _with_itself(colors_mixed(scale, "SVHN")),
    ),
    plots=_part_plots((_mixture("SVHN", 0.5), _mixture("SVHN", 0.5, "Tiny ImageNet"))),
    **notes("shi2022/figures22-23-svhn"),
)

STRUCTURE = (FIGURES22_25, FIGURES22_23_SVHN)
