"""Figure 3: learning the composite signal versus the size β of the base signal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from unlazy.lab.arms import Chosen, Row, StudyArm, shuffled_labels
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.readings import AS_WRITTEN, Reading
from unlazy.lab.rules import Check, Control, Scale, arm
from unlazy.papers.allenzhu2019.figure2 import UNLEARNED
from unlazy.papers.allenzhu2019.setting import Cell, Level, Trained, chosen_sgd, error_probes
from unlazy.tasks.hierarchy import PairHierarchy


class Figure3Size(NamedTuple):
    """Sizes of Figure 3."""

    betas: tuple[float, ...]
    width: int
    cells: dict[Trained, tuple[Cell, ...]]
    epochs: dict[Trained, int]
    test: int


#: Error below which G(F) counts as learned, and above which it counts as not learned.
LEARNED, NOT_LEARNED = UNLEARNED / 2, 0.9 * UNLEARNED
BETAS = (1.0, 0.5, 0.3, 0.2, 0.0)
_CELLS: dict[Trained, tuple[Cell, ...]] = {
    "all": ((0.05, 2e-3), (0.07, 1e-3), (0.07, 2e-3), (0.1, 1e-3), (0.1, 2e-3), (0.1, 3e-3)),
    "hidden": ((0.5, 1e-3), (0.8, 5e-4), (0.8, 1e-3)),
}
_PAPER_CELLS: dict[Trained, tuple[Cell, ...]] = {
    "all": tuple((rate, decay) for rate in (0.05, 0.1, 0.2) for decay in (1e-3, 2e-3, 3e-3, 5e-3)),
    "hidden": tuple(
        (rate, decay) for rate in (0.2, 0.35, 0.5, 0.8, 1.0) for decay in (2e-4, 5e-4, 1e-3)
    ),
}
FIGURE3_SIZES: dict[Scale, Figure3Size] = {
    "smoke": Figure3Size(
        BETAS, 10, {"all": ((0.1, 1e-3),), "hidden": ((0.2, 1e-3),)}, {"all": 1, "hidden": 1}, 100
    ),
    "laptop": Figure3Size(BETAS, 200, _CELLS, {"all": 800, "hidden": 800}, 5_000),
    "paper": Figure3Size(BETAS, 200, _PAPER_CELLS, {"all": 800, "hidden": 800}, 10_000),
}
#: Numbers of examples N, which the paper does not state (see `READINGS`). The last one is checked.
SAMPLE_SIZES: dict[Trained, tuple[int, ...]] = {"all": (1000,), "hidden": (1000, 2000)}


def arm_name(trained: Trained, n: int) -> str:
    """Return the name of an arm."""
    return f"({trained}) N = {n:,}"


def _resnet(
    family: PairHierarchy,
    scale: Scale,
    trained: Trained,
    n: int,
    epochs: int,
    settings: int | None = None,
) -> Chosen:
    size, probes = FIGURE3_SIZES[scale], error_probes(FIGURE3_SIZES[scale].test, 1000)
    cells, given_epochs = size.cells[trained][:settings], min(size.epochs[trained], epochs)
    given = n if scale != "smoke" else n // 10
    return chosen_sgd(family, "3resnet", trained, size.width, given, cells, given_epochs, probes)


def _sample_sizes(n: Mapping[Trained, int] | None) -> dict[str, tuple[Trained, int]]:
    """Return variant and N by the name of the arm.

    The checks name their arms by the default N. The arms of a reading have these names, too.
    """
    if n is not None:
        return {arm_name(t, sizes[-1]): (t, n[t]) for t, sizes in SAMPLE_SIZES.items()}
    return {arm_name(t, size): (t, size) for t, sizes in SAMPLE_SIZES.items() for size in sizes}


def figure3(
    scale: Scale, *, n: Mapping[Trained, int] | None = None, epochs: int = 800
) -> dict[str, StudyArm]:
    """Return the ResNet by 100·β; the validation error selects the setting.

    n: number of examples per variant, instead of `SAMPLE_SIZES`. epochs: maximum number.
    """
    betas = sorted(FIGURE3_SIZES[scale].betas)
    arms: dict[str, StudyArm] = {
        name: Row(
            {
                round(100 * beta): _resnet(PairHierarchy(beta=beta), scale, trained, size, epochs)
                for beta in betas
            }
        )
        for name, (trained, size) in _sample_sizes(n).items()
    }
    return arms | {"kα² = 1.35": Level(UNLEARNED, tuple(round(100 * beta) for beta in betas))}


def _null(
    scale: Scale, *, n: Mapping[Trained, int] | None = None, epochs: int = 800
) -> dict[str, StudyArm]:
    """Return the control: shuffled labels if β ≥ 0.3, d = 8 coordinates if β ≤ 0.2."""
    betas = [round(100 * beta) for beta in sorted(FIGURE3_SIZES[scale].betas)]
    sizes = _sample_sizes(n)
    arms: dict[str, StudyArm] = {}
    for name in (arm_name(trained, checked[-1]) for trained, checked in SAMPLE_SIZES.items()):
        trained, size = sizes[name]
        easy, original = (
            _resnet(family, scale, trained, size, epochs, settings=1)
            for family in (PairHierarchy(d=8, beta=0.2), PairHierarchy())
        )
        arms[name] = Row(
            {beta: easy if beta <= 20 else shuffled_labels(original) or original for beta in betas}
        )
    return arms


def _checks() -> tuple[Check, ...]:
    checks = []
    for trained, sizes in SAMPLE_SIZES.items():
        name = arm_name(trained, sizes[-1])
        for beta in BETAS:
            quantity = arm(name).test_squared_error[round(100 * beta)]
            checks.append(quantity <= LEARNED if beta >= 0.3 else quantity >= NOT_LEARNED)
    return tuple(checks)


_OPEN = "the text gives no N for this experiment"
#: The checks name their arms by N of the first reading; see `_sample_sizes`.
READINGS = (
    Reading(
        AS_WRITTEN,
        f"{_OPEN}; N = 1,000 if all layers are trained and 2,000 if the hidden layers are, at "
        "which the printed split occurs; 800 epochs as stated in Section 8.1",
    ),
    Reading(
        "N of Experiment 1",
        f"{_OPEN}; N = 500 and 1,000 as in Experiment 1",
        {"n": {"all": 500, "hidden": 1000}},
    ),
    *(
        Reading(f"N = {n:,}", f"{_OPEN}; the same for both", {"n": {"all": n, "hidden": n}})
        for n in (500, 1000, 2000)
    ),
    Reading(
        "400 epochs",
        "a shorter training, of which the learning rate is lowered in the second half",
        {"epochs": 400},
        ("800 epochs in Section 8.1",),
    ),
)
FIGURE3 = Claim(
    id="allenzhu2019/figure3",
    where="Figure 3, Section 8.1, Experiment 2",
    kind="figure",
    statement=(
        "H = β·F + α·G(F) with α = 0.3: the three-layer ResNet, trained in all layers or in the "
        "hidden layers only, learns the composite signal if α ≲ β (β = 1, 0.5, 0.3), and "
        "practically cannot learn it if α ≳ β (β = 0.2, 0)."
    ),
    study=figure3,
    checks=_checks(),
    control=Control(
        "shuffled labels if β ≥ 0.3; inputs of 8 coordinates, all covered by the training "
        "examples, if β ≤ 0.2",
        _null,
    ),
    readings=READINGS,
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    plots=(
        Plot(
            "Figure 3",
            "100·β",
            "test error",
            (
                *(
                    PlotLine(arm_name(t, n), "test_squared_error", arm_name(t, n))
                    for t, ns in SAMPLE_SIZES.items()
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
            "the composite signal has α = 0.3.",
        ),
    ),
    **notes("allenzhu2019/figure3"),
)
