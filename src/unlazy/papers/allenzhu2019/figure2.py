"""Figure 2: test error of nine methods versus width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unlazy.kernels.base import Kernel
from unlazy.kernels.wide import NNGP, NTK
from unlazy.lab.arms import Arm, Chosen, Row, StudyArm, shuffled_labels
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Check, Control, Scale, arm, arms
from unlazy.learners.kernel import KernelRidge
from unlazy.papers.allenzhu2019.setting import (
    RIDGES,
    Architecture,
    Cell,
    Level,
    Trained,
    chosen_linear,
    chosen_sgd,
    error_probes,
    grid,
)
from unlazy.tasks.hierarchy import PairHierarchy

#: Error k·α² of a model that equals the base signal.
UNLEARNED = 1.35
#: Error below which most of the composite signal is learned.
LEARNED = 0.8
ARCHITECTURES: tuple[Architecture, ...] = ("3resnet", "3layer", "2layer")


class Figure2Size(NamedTuple):
    """Sizes of Figure 2; `cells`: learning rates and decays by architecture."""

    widths: tuple[int, ...]
    cells: dict[Architecture, tuple[Cell, ...]]
    epochs: int
    test: int
    validation: int = 1000


def _same(cells: tuple[Cell, ...]) -> dict[Architecture, tuple[Cell, ...]]:
    return dict.fromkeys(ARCHITECTURES, cells)


#: Settings of the paper's grid {1, 2, 5}·10^k that were best on tuning seeds.
ALL_CELLS: dict[Architecture, tuple[Cell, ...]] = {
    "3resnet": ((0.05, 5e-3), (0.05, 1e-2), (0.1, 2e-3), (0.1, 5e-3)),
    "3layer": ((0.1, 2e-3), (0.1, 5e-3)),
    "2layer": ((0.05, 1e-2), (0.1, 5e-3), (0.1, 1e-2)),
}
#: If only hidden layers are trained, learning rates of 0.3 and 0.4, between those of the paper, are
#: needed for all seeds to learn.
HIDDEN_CELLS: dict[Architecture, tuple[Cell, ...]] = {
    "3resnet": grid((0.3, 0.4), (5e-4, 7e-4)),
    "3layer": ((0.2, 1e-3), (0.5, 1e-3), (1.0, 1e-3)),
    "2layer": ((0.2, 1e-3), (0.5, 1e-3), (1.0, 1e-3)),
}
HIDDEN_PAPER_CELLS = (
    *grid((0.05, 0.1, 0.2, 0.5, 1.0), (2e-4, 5e-4, 1e-3, 2e-3)),
    *grid((0.3, 0.4), (5e-4, 7e-4)),
)
ALL_PAPER_CELLS = grid((0.02, 0.05, 0.1, 0.2, 0.5), (5e-4, 1e-3, 2e-3, 5e-3, 1e-2))
SIZES_A: dict[Scale, Figure2Size] = {
    "smoke": Figure2Size((200,), _same(((0.1, 5e-3), (0.05, 1e-3))), 1, 100, 100),
    "laptop": Figure2Size((20, 50, 100, 200), ALL_CELLS, 800, 5_000),
    "paper": Figure2Size((20, 50, 100, 200, 500), _same(ALL_PAPER_CELLS), 800, 10_000),
}
SIZES_B: dict[Scale, Figure2Size] = {
    "smoke": Figure2Size((200,), _same(((0.2, 5e-4), (0.1, 1e-3))), 1, 100, 100),
    "laptop": Figure2Size((20, 50, 100, 200), HIDDEN_CELLS, 800, 5_000),
    "paper": Figure2Size((20, 50, 100, 200, 500), _same(HIDDEN_PAPER_CELLS), 800, 10_000),
}
SIZES: dict[Trained, dict[Scale, Figure2Size]] = {"all": SIZES_A, "hidden": SIZES_B}
EXAMPLES: dict[Trained, int] = {"all": 500, "hidden": 1000}
#: Width from which the ResNet must learn, and width of the control.
FROM = 200
#: Depth and features of kernels of infinite width. The limit of the ResNet is that of the two-layer
#: network plus a constant, which does not change a regression with a free mean.
LIMITS: dict[str, Kernel] = {
    f"{depth + 1}layer({features}), m = ∞": kind(depth, w_variance=1.0, b_variance=1 / 30)
    for features, kind in (("last", NNGP), ("NTK", NTK))
    for depth in (1, 2)
}


def over_widths(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the minimum error over all widths, and the maximum over those from `FROM` on."""
    error = np.where(np.isfinite(table["test_squared_error"]), table["test_squared_error"], np.inf)
    return {
        "least_test_squared_error": float(np.min(error)),
        "wide_test_squared_error": float(np.max(error[widths >= FROM], initial=0.0)),
    }


def figure2(
    scale: Scale,
    trained: Trained,
    *,
    size: Figure2Size | None = None,
    family: PairHierarchy | None = None,
) -> dict[str, StudyArm]:
    """Return each method by width; the validation error selects settings per width and seed."""
    size, family = size or SIZES[trained][scale], family or PairHierarchy()
    n = 60 if scale == "smoke" else EXAMPLES[trained]
    probes = error_probes(size.test, size.validation)
    summaries = (over_widths,)
    arms: dict[str, StudyArm] = {}
    for architecture, cells in size.cells.items():
        arms[f"{architecture}({trained})"] = Row(
            {
                m: chosen_sgd(family, architecture, trained, m, n, cells, size.epochs, probes)
                for m in size.widths
            },
            summaries=summaries,
        )
        for features in ("last", "NTK"):
            arms[f"{architecture}({features})"] = Row(
                {
                    m: chosen_linear(family, architecture, features, m, n, probes)
                    for m in size.widths
                },
                summaries=summaries,
            )
    for name, kernel in LIMITS.items():
        limit = Chosen({name: Arm(family, KernelRidge(kernel, RIDGES), n, probes)}, along=True)
        arms[name] = Row(dict.fromkeys(size.widths, limit))  # the same at all widths
    return arms | {"kα² = 1.35": Level(UNLEARNED, size.widths)}


def _null(trained: Trained, scale: Scale) -> dict[str, StudyArm]:
    """Return the control: shuffled labels for the ResNet, d = 8 for the other methods.

    With d = 8 the training examples cover most of the inputs.
    """
    size = SIZES[trained][scale]
    size = size._replace(
        widths=(FROM,), cells={name: cells[-1:] for name, cells in size.cells.items()}
    )
    easy = figure2(scale, trained, size=size, family=PairHierarchy(d=8))
    original = figure2(scale, trained, size=size)
    resnet = f"3resnet({trained})"
    return easy | {resnet: shuffled_labels(original[resnet]) or original[resnet]}


def _methods(trained: Trained) -> tuple[str, ...]:
    return tuple(
        f"{architecture}({method})"
        for method in (trained, "last", "NTK")
        for architecture in ARCHITECTURES
    )


def _checks(trained: Trained) -> tuple[Check, ...]:
    """Return the checks: wide ResNets learn, all other methods have error ≥ k·α² at all widths."""
    first, *others = _methods(trained)
    return (
        arm(first).wide_test_squared_error <= LEARNED,
        *((name.least_test_squared_error >= UNLEARNED).by_paper() for name in arms(*others)),
        *((name.test_squared_error >= UNLEARNED).by_paper() for name in arms(*LIMITS)),
    )


def _plots(trained: Trained, letter: str) -> tuple[Plot, ...]:
    first, *others = _methods(trained)
    error = "test_squared_error"
    level = PlotLine("kα² = 1.35", error, "kα² = 1.35: base signal alone", theory=True)
    x, y = "m = number of hidden neurons", "test error"
    return (
        Plot(
            f"Figure 2({letter}): N = {EXAMPLES[trained]:,}",
            x,
            y,
            (*(PlotLine(name, error, name) for name in (first, *others)), level),
            log_x=True,
            log_y=True,
            caption=(
                "Test error versus width, at the setting with minimum validation error. Below the "
                "dashed line a method has learned part of the composite signal. The text that we "
                "have contains no numbers of the paper's curves; the labels of its two axes end at "
                "0.01 and 10, and at 0.04 and 25."
            ),
        ),
        Plot(
            "Kernel methods and their limits of infinite width",
            x,
            y,
            (
                *(PlotLine(name, error, name) for name in others[2:]),
                *(PlotLine(name, error, name) for name in LIMITS),
                level,
            ),
            log_x=True,
            log_y=True,
            caption="The limits of the ResNet are those of the two-layer network.",
        ),
    )


def _claim(trained: Trained, letter: str, statement: str) -> Claim:
    return Claim(
        id=f"allenzhu2019/figure2{letter}",
        where=f"Figure 2({letter}), Section 8.1, Experiment 1",
        kind="figure",
        statement=statement,
        study=lambda scale: figure2(scale, trained),
        checks=_checks(trained),
        control=Control(
            "the ResNet is trained on shuffled labels; for the other methods d = 8, so that the "
            "training examples cover most of the inputs",
            lambda scale: _null(trained, scale),
        ),
        seeds={"smoke": 1, "laptop": 3, "paper": 3},
        plots=_plots(trained, letter),
        **notes(f"allenzhu2019/figure2{letter}"),
    )


FIGURE2A = _claim(
    "all",
    "a",
    "H = F + 0.3·G(F) on {±1}³⁰ with 15 outputs, N = 500 examples. Three-layer ResNet, three-layer "
    "and two-layer networks are trained in all layers, in the last layer (conjugate kernel), or "
    "linearized (NTK), by SGD with the best learning rate and weight decay of a grid. Only the "
    "ResNet trained in all layers learns part of α·G(F), that is, has a test error below k·α² = "
    "1.35. The kernel methods do not at any width.",
)
FIGURE2B = _claim(
    "hidden",
    "b",
    "H = F + 0.3·G(F) on {±1}³⁰ with N = 1,000 examples, hidden layers trained and the last layer "
    "fixed at initialization. Only the ResNet has a test error below k·α² = 1.35. The kernel "
    "methods do not at any width.",
)
