"""Figures 1 and 4: norm and error of SGD on a parity of degree 6 versus a constructed network."""

from __future__ import annotations

from typing import NamedTuple

from unlazy.lab.arms import Arm, Chosen, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Published, Scale, arms
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import SignedInit
from unlazy.papers.allenzhu2019.computations import HandMade
from unlazy.papers.allenzhu2019.probes import FirstLayerNorm
from unlazy.papers.allenzhu2019.setting import Cell
from unlazy.probes.performance import Performance, Validation
from unlazy.tasks.hierarchy import RealParity


class Figure4Size(NamedTuple):
    """Sizes of Figure 4.

    `on_grid`: settings of the paper's grid, for `epochs` and for `long` epochs; `off_grid`: other
    settings.
    """

    d: int
    n: int
    m: int
    batch: int
    on_grid: tuple[Cell, ...]
    epochs: int
    long: int
    off_grid: tuple[Cell, ...]
    test: int


FIGURE4_SIZES: dict[Scale, Figure4Size] = {
    "smoke": Figure4Size(8, 100, 64, 50, ((1.0, 1e-4), (2.0, 1e-4)), 2, 3, ((1.5, 1e-4),), 200),
    "laptop": Figure4Size(
        40, 5_000, 200, 50, ((10.0, 1e-5), (10.0, 2e-5)), 800, 4_000, ((13.0, 1.3e-5),), 10_000
    ),
    "paper": Figure4Size(
        40,
        5_000,
        200,
        50,
        ((5.0, 1e-5), (5.0, 2e-5), (10.0, 1e-5), (10.0, 2e-5), (10.0, 5e-5), (20.0, 2e-5)),
        800,
        8_000,
        ((13.0, 1.3e-5), (13.0, 2e-5)),
        20_000,
    ),
}
#: Minimum test error printed in the paper, at d = 40, N = 5,000.
FLOOR = 0.69
LARGE = Figure4Size(
    100, 50_000, 200, 100, ((20.0, 1e-6), (20.0, 2e-6), (50.0, 1e-6)), 400, 400, (), 20_000
)


def parity_sgd(size: Figure4Size, cell: Cell, epochs: int) -> GradientDescent:
    """Return SGD with momentum and weight decay on W only, initialized with standard deviation 0.1.

    The learning rate drops to a tenth after half of the steps.
    """
    rate, decay = cell
    steps = epochs * (size.n // size.batch)
    descent = Descent(
        {"w": rate},
        steps=steps,
        batch=size.batch,
        loss="squared",
        decay={"w": decay / 2},
        momentum=0.9,
        drop=0.5,
    )
    return GradientDescent(SignedInit(m=size.m, w_scale=0.1), (descent,))


def _searched(size: Figure4Size, cells: tuple[Cell, ...], epochs: int, q: int) -> dict[int, Arm]:
    probes = (Performance(size.test), Validation(2_000), FirstLayerNorm())
    return {
        index: Arm(RealParity(d=size.d, k=q), parity_sgd(size, cell, epochs), size.n, probes)
        for index, cell in enumerate(cells)
    }


def figure4(scale: Scale) -> dict[str, StudyArm]:
    """Return the constructed network, the best of SGD on and off the paper's grid, and all runs."""
    arms = _arms(scale, FIGURE4_SIZES[scale], 6, 0.0)
    if scale == "paper":
        arms["SGD at d = 100"] = Chosen(_searched(LARGE, LARGE.on_grid, LARGE.epochs, 6))
    return arms


def _null(scale: Scale) -> dict[str, StudyArm]:
    """Return the control: a parity of degree 2, and wrong signs in the constructed network."""
    size = FIGURE4_SIZES[scale]
    return _arms(
        scale, size._replace(epochs=min(size.epochs, 100), long=min(size.epochs, 100)), 2, 0.1
    )


def _arms(scale: Scale, size: Figure4Size, q: int, wrong_signs: float) -> dict[str, StudyArm]:
    runs = [
        _searched(size, size.on_grid, size.epochs, q),
        _searched(size, size.on_grid, size.long, q),
        _searched(size, size.off_grid, size.epochs, q),
    ]
    short, long, off = runs
    return {
        "by hand": HandMade(m=192 if scale != "smoke" else 64, wrong_signs=wrong_signs),
        "SGD": Chosen(short),
        "SGD, more epochs": Chosen(long),
        "SGD beside the grid": Chosen(off),
        "all that was tried": Row(dict(enumerate(arm for part in runs for arm in part.values()))),
    }


by_hand, sgd, longer = arms("by hand", "SGD", "SGD, more epochs")
FIGURE4 = Claim(
    id="allenzhu2019/figure4",
    where="Figures 1 and 4(a), Section 8.2",
    kind="figure",
    statement=(
        "Two-layer networks aᵀσ(Wx), a_j = ±1/√m fixed, on a parity of degree 6 of x ∈ {±1/√d}^d. "
        "There are W with ‖W‖_F ≈ 9.7√d, 12.5√d, 13.8√d and errors of at most 0.12, 0.037, 0.011. "
        "But SGD from random initialization, over learning rates and weight decays {1, 2, "
        "5}·10^{−k} and widths from 200, finds no W with a test error below 0.69 at d = 40 and N "
        "= 5,000, and none with a small training error and a small norm."
    ),
    study=figure4,
    checks=(
        (by_hand.error[970] <= 0.12).by_paper().exactly(),
        (by_hand.error[1250] <= 0.037).by_paper().exactly(),
        (by_hand.error[1380] <= 0.011).by_paper().exactly(),
        (sgd.test_squared_error >= FLOOR).by_paper(),
        (longer.test_squared_error >= FLOOR).by_paper(),
    ),
    published=(Published(sgd.best_test_squared_error, "0.69"),),
    control=Control(
        "a parity of degree 2, which SGD learns, and wrong signs of a tenth of the constructed "
        "neurons",
        _null,
    ),
    plots=(
        Plot(
            "Figure 4(a)",
            "error",
            "‖W‖_F / √d",
            (
                PlotLine(
                    "by hand",
                    "norm",
                    "constructed: training and test error",
                    x="error_floor",
                    theory=True,
                ),
                PlotLine(
                    "all that was tried",
                    "norm",
                    "SGD: training error",
                    x="train_squared_error",
                    points=True,
                ),
                PlotLine(
                    "all that was tried",
                    "norm",
                    "SGD: test error",
                    x="test_squared_error",
                    points=True,
                ),
            ),
            log_x=True,
            caption="Norms and errors of all settings. The paper shows norms of several hundred "
            "and no test error below 0.69.",
        ),
    ),
    **notes("allenzhu2019/figure4"),
)
