"""Figure 3: learning the composite signal versus the size β of the base signal."""

from __future__ import annotations

from typing import NamedTuple

from unlazy.lab.arms import Chosen, Row, StudyArm, shuffled_labels
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Check, Control, Scale, arm
from unlazy.papers.allenzhu2019.figure2 import UNLEARNED
from unlazy.papers.allenzhu2019.setting import (
    Cell,
    Level,
    Trained,
    chosen_sgd,
    error_probes,
    grid,
)
from unlazy.tasks.hierarchy import PairHierarchy

#: Learning rates and decays by β.
Cells = dict[float, tuple[Cell, ...]]


class Figure3Size(NamedTuple):
    """Sizes of Figure 3.

    `examples`: numbers of examples; the last one is checked. `thorough`: all settings at each
    width and number of examples, instead of only the first except where it is checked.
    """

    widths: tuple[int, ...]
    examples: dict[Trained, tuple[int, ...]]
    cells: dict[Trained, Cells]
    epochs: int
    test: int
    thorough: bool = False


#: Error below which G(F) counts as learned, and above which it counts as not learned.
LEARNED, NOT_LEARNED = UNLEARNED / 2, 0.9 * UNLEARNED
BETAS = (1.0, 0.5, 0.3, 0.2, 0.0)
#: Checked width.
WIDTH = 200
VARIANTS: tuple[Trained, ...] = ("all", "hidden")
_SEARCH_ALL: tuple[Cell, ...] = (
    (0.1, 2e-3),
    (0.05, 2e-3),
    (0.07, 1e-3),
    (0.07, 2e-3),
    (0.1, 1e-3),
    (0.1, 3e-3),
)
_SEARCH_HIDDEN: tuple[Cell, ...] = ((0.8, 1e-3), (0.5, 1e-3), (0.8, 5e-4))
#: As many settings at β = 0.2, which is not learned, as at β = 0.3, which is.
_CELLS: dict[Trained, Cells] = {
    "all": {
        1.0: ((0.1, 2e-3), (0.07, 2e-3)),
        0.5: ((0.1, 2e-3), (0.07, 2e-3)),
        0.3: _SEARCH_ALL,
        0.2: _SEARCH_ALL,
        0.0: ((0.1, 2e-3), (0.07, 1e-3), (0.1, 1e-3)),
    },
    "hidden": {
        1.0: ((0.35, 5e-4),),
        0.5: ((0.35, 5e-4),),
        0.3: _SEARCH_HIDDEN,
        0.2: _SEARCH_HIDDEN,
        0.0: _SEARCH_HIDDEN[:2],
    },
}
_PAPER_CELLS: dict[Trained, Cells] = {
    "all": dict.fromkeys(BETAS, grid((0.05, 0.1, 0.2), (1e-3, 2e-3, 3e-3, 5e-3))),
    "hidden": dict.fromkeys(BETAS, grid((0.2, 0.35, 0.5, 0.8, 1.0), (2e-4, 5e-4, 1e-3))),
}
_SMOKE_CELLS: dict[Trained, Cells] = {
    "all": dict.fromkeys(BETAS, ((0.1, 1e-3),)),
    "hidden": dict.fromkeys(BETAS, ((0.2, 1e-3),)),
}
#: N of Experiment 1 and twice as many. The paper does not state N for this experiment.
_EXAMPLES: dict[Trained, tuple[int, ...]] = {"all": (500, 1000), "hidden": (1000, 2000)}
_PAPER_EXAMPLES: dict[Trained, tuple[int, ...]] = {
    "all": (500, 2000, 1000),
    "hidden": (500, 1000, 2000),
}
FIGURE3_SIZES: dict[Scale, Figure3Size] = {
    "smoke": Figure3Size((20, WIDTH), _EXAMPLES, _SMOKE_CELLS, 1, 100),
    "laptop": Figure3Size((50, 100, WIDTH), _EXAMPLES, _CELLS, 800, 5_000),
    "paper": Figure3Size(
        (20, 50, 100, WIDTH, 500), _PAPER_EXAMPLES, _PAPER_CELLS, 800, 10_000, thorough=True
    ),
}


def by_beta(trained: Trained, n: int) -> str:
    """Return the name of an arm by β at the checked width."""
    return f"({trained}) N = {n:,}"


def by_width(trained: Trained, beta: float) -> str:
    """Return the name of an arm by width at the checked N, as in the paper."""
    return f"resnet(β = {beta:g}, {trained})"


def _resnet(
    scale: Scale, trained: Trained, n: int, m: int, beta: float, family: PairHierarchy | None = None
) -> Chosen:
    size = FIGURE3_SIZES[scale]
    cells = size.cells[trained][beta]
    if not (size.thorough or (n == size.examples[trained][-1] and m == WIDTH)):
        cells = cells[:1]
    given = n if scale != "smoke" else n // 10
    family = family or PairHierarchy(beta=beta)
    probes = error_probes(size.test, 1000)
    return chosen_sgd(family, "3resnet", trained, m, given, cells, size.epochs, probes)


def figure3(scale: Scale) -> dict[str, StudyArm]:
    """Return the ResNet by 100·β per N at width 200, and by width per β at the checked N.

    The validation error selects the setting.
    """
    size, arms = FIGURE3_SIZES[scale], dict[str, StudyArm]()
    betas = {round(100 * beta): beta for beta in sorted(BETAS)}
    for trained in VARIANTS:
        for n in size.examples[trained]:
            arms[by_beta(trained, n)] = Row(
                {at: _resnet(scale, trained, n, WIDTH, beta) for at, beta in betas.items()}
            )
        for beta in BETAS:
            n = size.examples[trained][-1]
            arms[by_width(trained, beta)] = Row(
                {m: _resnet(scale, trained, n, m, beta) for m in size.widths}
            )
    return arms | {
        "kα² = 1.35": Level(UNLEARNED, tuple(betas)),
        "kα² = 1.35 by width": Level(UNLEARNED, size.widths),
    }


def _null(scale: Scale) -> dict[str, StudyArm]:
    """Return the control: shuffled labels if β ≥ 0.3, d = 8 coordinates if β ≤ 0.2."""
    arms: dict[str, StudyArm] = {}
    for trained in VARIANTS:
        n = FIGURE3_SIZES[scale].examples[trained][-1]
        # One setting, in the control.
        easy = _resnet(scale, trained, n, WIDTH, 1.0, PairHierarchy(d=8, beta=0.2))
        original = _resnet(scale, trained, n, WIDTH, 1.0)
        easy, original = (Chosen(dict(list(each.arms.items())[:1])) for each in (easy, original))
        arms[by_beta(trained, n)] = Row(
            {
                round(100 * beta): easy if beta <= 0.2 else shuffled_labels(original) or original
                for beta in sorted(BETAS)
            }
        )
    return arms


def _checks() -> tuple[Check, ...]:
    checks = []
    for trained, sizes in _EXAMPLES.items():
        name = by_beta(trained, sizes[-1])
        for beta in BETAS:
            quantity = arm(name).test_squared_error[round(100 * beta)]
            checks.append(quantity <= LEARNED if beta >= 0.3 else quantity >= NOT_LEARNED)
    return tuple(checks)


def _plot(trained: Trained, letter: str) -> Plot:
    error, n = "test_squared_error", _EXAMPLES[trained][-1]
    level = "kα² = 1.35 by width"
    return Plot(
        f"Figure 3({letter}): N = {n:,}",
        "m = number of hidden neurons",
        "test error",
        (
            *(PlotLine(by_width(trained, beta), error, by_width(trained, beta)) for beta in BETAS),
            PlotLine(level, error, "kα² = 1.35: base signal alone", theory=True),
        ),
        log_x=True,
        log_y=True,
        caption="Test error of the ResNet versus width. The text that we have contains no numbers "
        "of the paper's curves; the labels of its two axes end at 0.0001 and 10, and at 0.01 and "
        "10.",
    )


FIGURE3 = Claim(
    id="allenzhu2019/figure3",
    where="Figure 3, Section 8.1, Experiment 2",
    kind="figure",
    statement=(
        "H = β·F + α·G(F) with α = 0.3: the three-layer ResNet, trained in all layers or in the "
        "hidden layers only, learns the composite signal if α ≲ β (β = 1, 0.5, 0.3), and "
        "practically cannot learn it if α ≳ β (β = 0.2, 0). The paper does not state N; tested at "
        "N = 1,000 (all layers) and N = 2,000 (hidden layers), twice the numbers of Experiment 1, "
        "which are shown too."
    ),
    study=figure3,
    checks=_checks(),
    control=Control(
        "shuffled labels if β ≥ 0.3; inputs of 8 coordinates, all covered by the training "
        "examples, if β ≤ 0.2",
        _null,
    ),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    plots=(
        _plot("all", "a"),
        _plot("hidden", "b"),
        Plot(
            "Numbers of examples",
            "100·β",
            "test error",
            (
                *(
                    PlotLine(by_beta(t, n), "test_squared_error", by_beta(t, n))
                    for t, ns in _EXAMPLES.items()
                    for n in ns
                ),
                PlotLine(
                    "kα² = 1.35",
                    "test_squared_error",
                    "kα² = 1.35: base signal alone",
                    theory=True,
                ),
            ),
            log_y=True,
            caption="Test error of the ResNet of width 200 versus the size β of the base signal; "
            "the composite signal has α = 0.3. At laptop scale, the smaller N have one setting "
            "each.",
        ),
    ),
    **notes("allenzhu2019/figure3"),
)
