"""Algorithm 1 and Figure 26: test loss over network size, for teachers and students.

Reference: shi2022, Algorithm 1, Appendix E.5.1 and E.5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from unlazy.lab.arms import Arm, Row, StudyArm, shuffled_labels
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arms
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.papers.shi2022.injected import InjectedImages
from unlazy.papers.shi2022.structure import DENSE, quadratic, taught_by
from unlazy.probes.performance import Performance
from unlazy.tasks.images.families import ImageClasses


class CurveSizes(NamedTuple):
    """Network sizes of teachers and students, teachers of students, examples and steps of both
    curves, and test examples.
    """

    sizes: tuple[int, ...]
    student_sizes: tuple[int, ...]
    teachers: tuple[int, ...]
    n: int
    steps: int
    n_students: int
    student_steps: int
    test: int


CURVES: dict[Scale, CurveSizes] = {
    "smoke": CurveSizes((1, 2, 3), (1, 2), (2, 3), 40, 10, 40, 10, 40),
    "laptop": CurveSizes(
        sizes=(1, 2, 3, 5, 9, 14, 20, 35, 60),
        student_sizes=(5, 9, 14, 20, 35, 60),
        teachers=(9, 50),
        n=6_000,
        steps=750,
        n_students=60_000,
        student_steps=3_000,
        test=3_000,
    ),
    "paper": CurveSizes(
        sizes=(1, 2, 3, 5, 9, 14, 20, 35, 50, 100, 200, 500, 1000),
        student_sizes=(2, 5, 9, 14, 20, 35, 50, 100, 200, 500, 1000),
        teachers=(9, 50, 500),
        n=60_000,
        steps=60_000,
        n_students=60_000,
        student_steps=60_000,
        test=10_000,
    ),
}
BATCH, RATE = 100, 3e-3
#: Examples and steps of a teacher.
TAUGHT, TAUGHT_STEPS = 20_000, 500


def first_minimum(losses: np.ndarray) -> int:
    """Return the index of the minimum in the classical regime: the first loss below the previous
    one and not above the next two.

    This is the last index if the losses decrease, and the first if they increase.
    """
    for index in range(len(losses)):
        after = losses[index + 1 : index + 3]
        if (index == 0 or losses[index] < losses[index - 1]) and np.all(losses[index] <= after):
            return index
    return int(np.argmin(losses))


def chosen_size(sizes: np.ndarray, table: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """Return `chosen_size` at the first minimum of the test loss, its log₂ (`log_size`), and
    `rise`, the largest later loss minus this minimum.
    """
    losses = table["test_loss"]
    index = first_minimum(losses)
    return {
        "chosen_size": sizes[index],
        "log_size": np.log2(sizes[index]),
        "rise": np.max(losses[index:]) - losses[index],
    }


def _network(m: int, steps: int) -> GradientDescent:
    descent = Descent(
        {group: RATE for group in DENSE}, steps=steps, batch=BATCH, loss="softmax", optimizer="adam"
    )
    return GradientDescent(quadratic(m, 784), (descent,))


def curves(scale: Scale) -> dict[str, StudyArm]:
    """Return the loss over sizes of teachers on MNIST, and of their students on Gaussians."""
    size = CURVES[scale]
    probes = (Performance(size.test),)
    mnist = ImageClasses("mnist", flat=True)
    arms: dict[str, StudyArm] = {
        "teachers": Row(
            {m: Arm(mnist, _network(m, size.steps), size.n, probes) for m in size.sizes},
            summaries=(chosen_size,),
        )
    }
    return arms | {_students(i): students(size, t) for i, t in enumerate(size.teachers)}


def _students(index: int) -> str:
    return f"students of {('the chosen', 'a larger', 'the largest')[index]} teacher"


def students(size: CurveSizes, t: int) -> Row:
    """Return students of all sizes on Gaussians labeled by a teacher FC(t)."""
    teacher = taught_by(quadratic(t, 784), DENSE, RATE, TAUGHT_STEPS, BATCH)
    family = InjectedImages(
        "mnist", alpha=1.0, teacher=teacher, taught=min(TAUGHT, size.n_students), flat=True
    )
    probes = (Performance(size.test),)
    arms = {
        m: Arm(family, _network(m, size.student_steps), size.n_students, probes)
        for m in size.student_sizes
    }
    return Row(arms, summaries=(chosen_size,))


def swapped(scale: Scale) -> dict[str, StudyArm]:
    """Return the curves with shuffled labels for teachers, and with the students of the first two
    teachers exchanged.
    """
    arms = curves(scale)
    return {
        "teachers": shuffled_labels(arms["teachers"]) or arms["teachers"],
        _students(0): arms[_students(1)],
        _students(1): arms[_students(0)],
    }


on_mnist, chosen, larger = arms("teachers", _students(0), _students(1))
ALGORITHM1 = Claim(
    id="shi2022/algorithm1",
    where="Algorithm 1, Figure 26 (Appendix E.5.1, E.5.4)",
    kind="learner",
    statement=(
        "The test loss of teachers FC(m) on MNIST has a minimum in the classical regime, at m = 9. "
        "Students on Gaussians labeled by this teacher have their minimum at roughly the same "
        "size; with a larger teacher it moves to a larger size."
    ),
    study=curves,
    checks=(
        (on_mnist.rise >= 0.02).refuting(),
        on_mnist.log_size.between(2.0, 4.9),
        (chosen.log_size - on_mnist.log_size).between(-1.5, 1.5),
        larger.log_size - chosen.log_size >= 0.5,
    ),
    seeds={"smoke": 1, "laptop": 5, "paper": 3},
    control=Control(
        "teachers get shuffled labels, and the students of FC(9) and of FC(50) are exchanged",
        swapped,
    ),
    plots=(
        Plot(
            title="Test loss over network size",
            x="hidden neurons m",
            y="test loss",
            series=tuple(
                PlotLine(arm, "test_loss", arm)
                for arm in ("teachers", *(_students(index) for index in range(3)))
            ),
            log_x=True,
        ),
    ),
    **notes("shi2022/algorithm1"),
)
