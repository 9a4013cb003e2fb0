"""Diagnostics that refit the selected methods of an audit: with fewer rows, on rotated columns, and
with permuted targets.

Each diagnostic is a function of the problem and of the methods that were selected. It returns a
sentence and plain data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator

from unlazy.estimators.catalog import GROUPS, Group
from unlazy.tables.folds import Encoded
from unlazy.tasks.tables.problems import Problem

#: Groups between which an audit decides.
PAIR: tuple[Group, ...] = ("fixed", "learned")
#: Fractions of the training rows at which learning curves are measured.
FRACTIONS = (1 / 8, 1 / 4, 1 / 2)


class SelectedFold(eqx.Module):
    """A fold of a table, the estimator that tuning chose there, and its mean test loss."""

    repeat: int = eqx.field(static=True)
    fold: int = eqx.field(static=True)
    estimator: BaseEstimator = eqx.field(static=True)
    loss: float = eqx.field(static=True)

    def encoded(self, problem: Problem, **changes: Any) -> Encoded:
        """Return the encoded rows of the fold."""
        return Encoded(problem, problem.folds(self.repeat)[self.fold], **changes)


class Selected(eqx.Module):
    """The method that was selected for a group, with its first folds."""

    method: str = eqx.field(static=True)
    folds: tuple[SelectedFold, ...]

    @property
    def loss(self) -> float:
        """Mean test loss over these folds."""
        return float(np.mean([fold.loss for fold in self.folds]))


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The result of a diagnostic: a sentence, and numbers for the page."""

    name: str
    says: str
    data: Mapping[str, Any]


def unit(problem: Problem) -> str:
    """Return the unit of losses."""
    return "% wrong" if problem.kind == "classification" else "% of the variance unexplained"


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _of_folds(selected: Selected) -> str:
    folds = len(selected.folds)
    return "On the first fold" if folds == 1 else f"On the first {folds} folds"


def learning_curves(problem: Problem, selected: Mapping[Group, Selected]) -> Explanation:
    """Measure the test loss of the selected methods with fewer training rows."""
    curves = {group: _curve(problem, method) for group, method in selected.items()}
    fixed, learned = (dict(zip(*curves[group], strict=True)) for group in ("fixed", "learned"))
    sizes = [rows for rows in learned if rows in fixed]
    gaps = [fixed[rows] - learned[rows] for rows in sizes]
    i = int(np.argmax(gaps))
    says = (
        f"{_of_folds(selected['learned'])}, {selected['learned'].method} versus "
        f"{selected['fixed'].method}: gain {_signed(gaps[0])} points with {sizes[0]:,} training "
        f"rows, {_signed(gaps[-1])} with {sizes[-1]:,}"
        + (f" (largest: {_signed(gaps[i])} with {sizes[i]:,})." if 0 < i < len(gaps) - 1 else ".")
    )
    named = {
        group: {"name": selected[group].method, "rows": rows, "losses": losses}
        for group, (rows, losses) in curves.items()
    }
    return Explanation("learning curves", says, {"curves": named, "unit": unit(problem)})


def _curve(problem: Problem, selected: Selected) -> tuple[list[int], list[float]]:
    """Return numbers of training rows, up to all, and the mean loss with each."""
    sizes, losses = [], []
    for fraction in FRACTIONS:
        found, rows = [], 0
        for each in selected.folds:
            data = each.encoded(problem)
            draws = np.random.default_rng(each.fold).random(len(data.y))
            order = np.lexsort([draws, np.arange(len(data.y)) % round(1 / fraction)])
            some = order[: max(10, int(fraction * len(data.y)))]
            kept, all_labels = np.unique(data.y[some]), np.unique(data.y)
            if problem.kind == "classification" and len(kept) < len(all_labels):
                continue
            rows = len(some)
            found.append(float(np.mean(data.losses(each.estimator, some))))
        if found:
            sizes.append(rows)
            losses.append(float(np.mean(found)))
    everything = len(problem) - len(selected.folds[0].encoded(problem).test)
    return [*sizes, everything], [*losses, selected.loss]


def rotation(problem: Problem, selected: Mapping[Group, Selected]) -> Explanation:
    """Fit the selected methods to randomly rotated columns."""
    found: dict[Group, dict[str, Any]] = {}
    for group, method in selected.items():
        losses = []
        for each in method.folds:
            data = each.encoded(problem, rotation=each.fold)
            losses.append(float(np.mean(data.losses(each.estimator))))
        found[group] = {
            "name": method.method,
            "as they are": method.loss,
            "rotated": float(np.mean(losses)),
        }
    before, after = (
        min(found, key=lambda group: found[group][way]) for way in ("as they are", "rotated")
    )
    says = (
        f"On randomly rotated columns, {GROUPS[after]} ({found[after]['name']}) have the lowest "
        f"loss"
    ) + (
        ", as on the original columns."
        if before == after
        else f"; on the original columns, {GROUPS[before]} do. The individual columns matter."
    )
    return Explanation("rotation", says, {"sides": found, "unit": unit(problem)})


def permuted_labels(problem: Problem, selected: Mapping[Group, Selected]) -> Explanation:
    """Fit the selected methods of both groups to permuted targets: a difference due to chance."""
    y = np.random.default_rng(0).permutation(problem.y)
    losses: dict[str, float] = {}
    for group in PAIR:
        each = selected[group].folds[0]
        losses[group] = float(np.mean(each.encoded(problem, y=y).losses(each.estimator)))
    gap = losses["fixed"] - losses["learned"]
    says = (
        f"With permuted targets (one fold), the gain is {_signed(gap)} points. The true gain is "
        f"then "
        "0: differences of this size arise by chance."
    )
    return Explanation("permuted labels", says, {"losses": losses, "unit": unit(problem)})
