"""Figure 2: which of nine methods learn the composite signal, over the width."""

from __future__ import annotations

from typing import NamedTuple

from unlazy.lab.arms import Row, StudyArm, shuffled_labels
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Check, Condition, Control, Scale, arm, arms
from unlazy.papers.allenzhu2019.setting import (
    Architecture,
    Cell,
    Level,
    Trained,
    chosen_linear,
    chosen_sgd,
    grid,
    looks,
)
from unlazy.tasks.hierarchy import PairHierarchy

#: The error k·α² of a model that has learned the base signal alone.
UNLEARNED = 1.35
#: Below this, most of the composite signal is learned.
LEARNED = 0.8
ARCHITECTURES: tuple[Architecture, ...] = ("3resnet", "3layer", "2layer")


class Figure2Size(NamedTuple):
    """Sizes of Figure 2."""

    widths: tuple[int, ...]
    judged: int
    cells: tuple[Cell, ...]
    epochs: int
    test: int
    validation: int = 1000


#: The grid is the paper's own, {1, 2, 5}·10^k, around cells that learned on tuning seeds.
ALL_CELLS = grid((0.02, 0.05, 0.1), (1e-3, 2e-3, 5e-3, 1e-2))
#: Where only hidden layers are trained, rates of 0.3 and 0.4 between those of the paper are needed
#: for all seeds to learn.
HIDDEN_CELLS = (*grid((0.2, 0.5), (5e-4, 1e-3)), *grid((0.3, 0.4), (5e-4, 7e-4)))
HIDDEN_PAPER_CELLS = (
    *grid((0.05, 0.1, 0.2, 0.5, 1.0), (2e-4, 5e-4, 1e-3, 2e-3)),
    *grid((0.3, 0.4), (5e-4, 7e-4)),
)
SIZES_A: dict[Scale, Figure2Size] = {
    "smoke": Figure2Size((200,), 200, ((0.1, 5e-3), (0.05, 1e-3)), 1, 100, 100),
    "laptop": Figure2Size((50, 100, 200, 500), 200, ALL_CELLS, 800, 5_000),
    "paper": Figure2Size(
        (20, 50, 100, 200, 500),
        200,
        grid((0.02, 0.05, 0.1, 0.2, 0.5), (5e-4, 1e-3, 2e-3, 5e-3, 1e-2)),
        800,
        10_000,
    ),
}
SIZES_B: dict[Scale, Figure2Size] = {
    "smoke": Figure2Size((200,), 200, ((0.2, 5e-4), (0.1, 1e-3)), 1, 100, 100),
    "laptop": Figure2Size((50, 200), 200, HIDDEN_CELLS, 800, 5_000),
    "paper": Figure2Size((20, 50, 100, 200, 500), 200, HIDDEN_PAPER_CELLS, 800, 10_000),
}
SIZES: dict[Trained, dict[Scale, Figure2Size]] = {"all": SIZES_A, "hidden": SIZES_B}
EXAMPLES: dict[Trained, int] = {"all": 500, "hidden": 1000}


def figure2(
    scale: Scale,
    trained: Trained,
    widths: tuple[int, ...] | None = None,
    *,
    size: Figure2Size | None = None,
    family: PairHierarchy | None = None,
) -> dict[str, StudyArm]:
    """Each method over the width, its setting chosen at each width and seed by the validation
    error.
    """
    size, family = size or SIZES[trained][scale], family or PairHierarchy()
    n = 60 if scale == "smoke" else EXAMPLES[trained]
    probes = looks(size.test, size.validation)
    at = size.widths if widths is None else widths
    arms: dict[str, StudyArm] = {}
    for architecture in ARCHITECTURES:
        arms[f"{architecture}({trained})"] = Row(
            {
                m: chosen_sgd(family, architecture, trained, m, n, size.cells, size.epochs, probes)
                for m in at
            }
        )
        for what in ("last", "NTK"):
            arms[f"{architecture}({what})"] = Row(
                {m: chosen_linear(family, architecture, what, m, n, probes) for m in at}
            )
    return arms | {"kα² = 1.35": Level(UNLEARNED, at)}


def _null(trained: Trained, scale: Scale) -> dict[str, StudyArm]:
    """The residual network sees labels of other inputs; the other methods see so few coordinates
    that all inputs are seen.
    """
    size = SIZES[trained][scale]
    width, few = (size.judged,), size._replace(cells=size.cells[:2])
    easy = figure2(scale, trained, width, size=few, family=PairHierarchy(d=8))
    shown = figure2(scale, trained, width, size=few)
    resnet = f"3resnet({trained})"
    return easy | {resnet: shuffled_labels(shown[resnet]) or shown[resnet]}


def _methods(trained: Trained) -> tuple[str, ...]:
    return tuple(
        f"{architecture}({what})"
        for what in (trained, "last", "NTK")
        for architecture in ARCHITECTURES
    )


def _checks(trained: Trained) -> tuple[Check, ...]:
    """At width 200 and all scales, the residual network learns and no other gets below k·α²."""
    first, *others = _methods(trained)
    at = SIZES[trained]["laptop"].judged
    return (
        arm(first).test_squared_error[at] <= LEARNED,
        *((name.test_squared_error[at] >= UNLEARNED).by_paper() for name in arms(*others)),
    )


def _plot(trained: Trained, letter: str) -> Plot:
    lines = tuple(PlotLine(name, "test_squared_error", name) for name in _methods(trained))
    return Plot(
        f"Figure 2({letter}): N = {EXAMPLES[trained]:,}",
        "m = number of hidden neurons",
        "test error",
        (
            *lines,
            PlotLine(
                "kα² = 1.35", "test_squared_error", "kα² = 1.35: the base signal alone", theory=True
            ),
        ),
        log_x=True,
        log_y=True,
        caption=(
            "Test error against the width, of the setting that the validation error chose. Below "
            "the dashed line a method has learned something of the composite signal."
        ),
    )


def _claim(trained: Trained, letter: str, statement: str, deviations: tuple[str, ...]) -> Claim:
    return Claim(
        id=f"allenzhu2019/figure2{letter}",
        where=f"Figure 2({letter}), Section 8.1, Experiment 1",
        kind="figure",
        statement=statement,
        study=lambda scale: figure2(scale, trained),
        checks=_checks(trained),
        conditions=(
            Condition(
                "N examples, as in the figure",
                lambda scale: EXAMPLES[trained],
                lambda scale: {"all": 500, "hidden": 1000}[trained],
                "≤",
            ),
        ),
        control=Control(
            "the residual network sees labels of other inputs; for the other methods d = 8, so "
            "that all inputs are seen",
            lambda scale: _null(trained, scale),
        ),
        seeds={"smoke": 1, "laptop": 3, "paper": 3},
        plots=(_plot(trained, letter),),
        **notes(f"allenzhu2019/figure2{letter}"),
    )


FIGURE2A = _claim(
    "all",
    "a",
    "H = F + 0.3·G(F) on {±1}³⁰ with 15 outputs, N = 500 examples. Of three-layer ResNet, "
    "three-layer and two-layer networks, each trained in all layers, in its last layer, or as its "
    "tangent model, by SGD with the best of a grid of step sizes and weight decays, the ResNet "
    "trained in all layers alone has a test error below k·α² = 1.35, and so learns something of "
    "α·G(F).",
    (
        "Laptop scale has twelve cells of the grid; a step size of 0.2 diverges, one of 0.02 "
        "learns too little.",
    ),
)
FIGURE2B = _claim(
    "hidden",
    "b",
    "The same with N = 1,000 examples, where networks are trained in their hidden layers, with "
    "the last layer as drawn: the ResNet alone has a test error below k·α² = 1.35.",
    (
        "Laptop scale has two widths and eight cells, four of which, with step sizes of 0.3 and "
        "0.4, lie between those of the paper's grid.",
        "Networks trained in the hidden layers have no (last) or (NTK) of their own: the same two "
        "as in Figure 2(a) stand beside them.",
    ),
)
