"""Plots of how a network learns a parity: weights of neurons on and off its bits, and the score by
number of ones, from the arrays of `PartWeights` and `ScoreByOnes`.
"""

from __future__ import annotations

import numpy as np

from unlazy.core.errors import require
from unlazy.core.metrics import TIE
from unlazy.lab.trials import Record
from unlazy.report.view import ViewPlot, ViewSeries, slug

_WEIGHTS, _SCORES = {"neuron_on", "neuron_off"}, {"ones_mean", "ones_low", "ones_high"}
#: Maximum number of steps shown.
MAX_STEPS = 4


def has_parity(record: Record) -> bool:
    """Return whether a record holds what these plots need."""
    return record.arrays.keys() >= _WEIGHTS | _SCORES


def shown_steps(record: Record) -> list[int]:
    """Return the steps that are shown: the first two, one in the middle, and the last."""
    steps = list(record.steps)
    if len(steps) <= MAX_STEPS:
        return steps
    return [*steps[: MAX_STEPS - 2], steps[(MAX_STEPS - 2 + len(steps)) // 2], steps[-1]]


def parity_signs(record: Record) -> np.ndarray:
    """Return the parity at 0, 1, …, k ones: with all bits one it is 1."""
    k = record.arrays["ones_mean"].shape[1] - 1
    return np.where((k - np.arange(k + 1)) % 2 == 0, 1, -1)


def parity_plots(record: Record, arm: str) -> list[ViewPlot]:
    """Return the plot of weights and the plot of scores, one series per step.

    Weights are in units of the step's root mean square, scores in units of the largest mean.
    """
    require(
        has_parity(record),
        "This record has no weights by part and scores by ones: its trial lacked these probes, or "
        "it was read without arrays.",
    )
    weights: list[ViewSeries] = []
    scores: list[ViewSeries] = []
    signs = parity_signs(record)
    for step in shown_steps(record):
        place, name = record.steps.index(step), "initialization" if step == 0 else f"step {step}"
        on, off, mean, low, high = (
            record.arrays[array][place].astype(float)
            for array in ("neuron_on", "neuron_off", "ones_mean", "ones_low", "ones_high")
        )
        unit = max(float(np.sqrt(np.mean(on**2 + off**2))), 1e-30)
        weights.append(ViewSeries(name, _plain(off / unit), _plain(on / unit), mark="points"))
        largest = max(float(np.max(np.abs(mean))), TIE)
        hover = [
            f"{ones} ones, parity {sign}: mean score {value:.3g}"
            for ones, (sign, value) in enumerate(zip(signs, mean, strict=True))
        ]
        scores.append(
            ViewSeries(
                name,
                _plain(np.arange(len(mean))),
                _plain(mean / largest),
                _plain(low / largest),
                _plain(high / largest),
                hover=tuple(hover),
            )
        )
    ends = [abs(v) for each in weights for v in (*each.x, *each.y) if np.isfinite(v)]
    reach = 1.05 * max(ends, default=1.0)
    weights.append(
        ViewSeries("as much on A as off A", (reach, 0.0, reach), (reach, 0.0, -reach), kind="guide")
    )
    return [
        ViewPlot(
            f"Weights of {arm} on and off the bits A of the parity, seed {record.seed}",
            "root mean square weight off A",
            "mean weight on A",
            tuple(weights),
            facets=True,
            caption="Each mark is a neuron, in units of the step's root mean square weight. Click "
            "on a step to hide or show it.",
            name=f"weights-{slug(arm)}",
        ),
        ViewPlot(
            f"Score of {arm} by number of ones, seed {record.seed}",
            "ones among the bits of A",
            "mean score",
            tuple(scores),
            ticks=tuple(map(float, range(len(signs)))),
            facets=True,
            caption="In units of the largest mean. A network that computes the parity alternates "
            "in sign. Bands hold the middle 80 % of inputs.",
            name=f"scores-{slug(arm)}",
        ),
    ]


def _plain(values: np.ndarray) -> tuple[float, ...]:
    return tuple(map(float, values))
