"""Decide from cross-validation results whether feature learning helps, and explain the decision."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from unlazy.estimators.catalog import AUDIT
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.tables.cross_validation import CVResults, Gap
from unlazy.tables.recipe import winner_code
from unlazy.tasks.tables.problems import FOLDS

Decision = Literal["learn features", "a kernel is enough", "not decided", "nothing to learn"]
#: Smallest gain that counts: points of accuracy, or percent of the target's variance.
MARGIN = 1.0
#: Level of the two-sided interval whose upper end must lie below the margin: one-sided 95 %.
RULED_OUT = 0.90
#: Confidence level of the comparison with the constant.
SIGNAL_LEVEL = 0.99
#: Largest factor on the number of rows for which an estimate is printed.
MAX_FACTOR = 100
_KEYS = {
    "signal": "better than a constant by",
    "fixed": "best with fixed features",
    "learned": "best with learned features",
    "plain": "best plain method",
    "paragraph": "answer",
    "changes": "what would change it",
    "trees_better": "trees are better",
}


@dataclasses.dataclass(frozen=True)
class AuditDecision:
    """The decision, the difference between both groups of methods, and the explanation."""

    decision: Decision
    gap: Gap
    signal: Gap
    fixed: str
    learned: str
    plain: str | None
    paragraph: str
    changes: str
    code: str
    trees_better: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON data."""
        return to_plain(self, _KEYS)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        return from_plain(cls, told, _KEYS)


def judge(standings: CVResults) -> AuditDecision:
    """Return the decision.

    - "nothing to learn": neither group is better than the constant (99 % interval).
    - "learn features": the gain of learned features is at least `MARGIN` and its 95 % interval lies
      above 0.
    - "a kernel is enough": the one-sided 95 % bound of the gain lies below `MARGIN`.
    - "not decided": otherwise. Then there is no code, unless trees are better than both groups.
    """
    fixed, learned = standings.selected("fixed"), standings.selected("learned")
    plain = (
        standings.selected("tree")
        if any(AUDIT[name].group == "tree" for name in standings.names)
        else None
    )
    gap = standings.gap(fixed, learned)
    best = (
        fixed if np.mean([f.loss for f in fixed]) <= np.mean([f.loss for f in learned]) else learned
    )
    signal = standings.gap(standings.constant(), best, SIGNAL_LEVEL)
    decision: Decision = "not decided"
    if signal.low <= 0:
        decision = "nothing to learn"
    elif gap.low > 0 and gap.mean >= MARGIN:
        decision = "learn features"
    elif standings.gap(fixed, learned, RULED_OUT).high < MARGIN:
        decision = "a kernel is enough"
    names = (
        standings.most_selected("fixed"),
        standings.most_selected("learned"),
        standings.most_selected("tree") if plain else None,
    )
    winner = names[1] if decision == "learn features" else names[0]
    trees_better = False
    if names[2] is not None and decision != "nothing to learn" and _trees_are_better(standings):
        winner, trees_better = names[2], True
    return AuditDecision(
        decision,
        gap,
        signal,
        *names,
        _paragraph(standings, decision, gap, names, trees_better),
        _changes(standings, decision, gap),
        "" if decision == "not decided" and not trees_better else winner_code(standings, winner),
        trees_better,
    )


def _trees_are_better(standings: CVResults) -> bool:
    """Return whether tree ensembles are significantly better than both groups."""
    trees = standings.selected("tree")
    return all(
        standings.gap(standings.selected(group), trees).low > 0 for group in ("fixed", "learned")
    )


def _paragraph(
    standings: CVResults,
    decision: Decision,
    gap: Gap,
    names: tuple[str, str, str | None],
    trees_better: bool,
) -> str:
    problem, folds = standings.problem, len(standings.complete)
    loss = "error" if problem.kind == "classification" else "unexplained variance"
    fixed, learned, constant = (
        float(np.mean([fold.loss for fold in results]))
        for results in (
            standings.selected("fixed"),
            standings.selected("learned"),
            standings.constant(),
        )
    )
    mean, low, high = (f"{each:.1f}".replace("-", "−") for each in (gap.mean, gap.low, gap.high))
    interval = f"difference {mean}, 95 % CI {low} to {high}"
    better = "learned features are significantly better, but " if gap.low > 0 else ""
    result = {
        "learn features": f"Feature learning helps: {learned:.1f} % {loss} versus {fixed:.1f} % "
        f"({interval}).",
        "a kernel is enough": f"A fixed kernel suffices: a gain ≥ {MARGIN:g} point is ruled out.",
        "not decided": f"Inconclusive: {better}a gain ≥ {MARGIN:g} point is neither shown nor "
        "excluded.",
        "nothing to learn": "No signal: neither fixed nor learned features beat the constant "
        f"({constant:.1f} % {loss}).",
    }[decision]
    if folds < FOLDS:
        result = f"Preliminary ({folds} of {FOLDS} folds): {result}"
    groups = (
        f"Learned features (most often {names[1]}): {learned:.1f} %; fixed features (most often "
        f"{names[0]}): {fixed:.1f} %; constant: {constant:.1f} % {loss}"
        f"{'' if decision == 'learn features' else f' ({interval})'}."
    )
    parts = f"{folds} of {FOLDS}" if folds < FOLDS else str(folds)
    size = f"{len(problem):,} rows, {len(problem.names)} columns, {parts} folds."
    trees = [_trees(standings, decision, names[2], trees_better)] if names[2] else []
    return " ".join([result, groups, *trees, size])


def _trees(standings: CVResults, decision: Decision, name: str, better: bool) -> str:
    """Return a sentence on the tree ensembles, which do not enter the decision."""
    trees = standings.selected("tree")
    loss = np.mean([fold.loss for fold in trees])
    said = f"Tree ensembles (most often {name}): {loss:.1f} %"
    if decision == "nothing to learn":
        beat = standings.gap(standings.constant(), trees, SIGNAL_LEVEL).low > 0
        return f"{said}, {'better than' if beat else 'not significantly better than'} the constant."
    return f"{said}{', significantly better than both; prefer them to predict' * better}."


def _rows_needed(standings: CVResults, gap: Gap) -> str:
    """Return the number of rows at which the same gain would be conclusive, as a sentence.

    Half-widths of intervals are inversely proportional to the square root of the number of rows. A
    gain of at least `MARGIN` is shown if the 95 % interval excludes 0; a smaller one can only be
    excluded, by the 90 % interval.
    """
    rows, shown = len(standings.problem), gap.mean >= MARGIN
    fixed, learned = standings.selected("fixed"), standings.selected("learned")
    used = gap if shown else standings.gap(fixed, learned, RULED_OUT)
    distance = gap.mean if shown else MARGIN - gap.mean
    factor = max(((used.high - used.low) / 2 / max(distance, 1e-9)) ** 2, 1.0)
    verb, gain = "show" if shown else "exclude", f"{gap.mean:.1f}".replace("-", "−")
    if factor > MAX_FACTOR:
        size = f"more than {MAX_FACTOR} times as many rows would be needed"
    else:
        size = f"about {int(np.ceil(rows * factor / 100) * 100):,} rows would be needed"
    return f"If the gain stays at {gain}, {size} to {verb} a gain ≥ {MARGIN:g} point."


def _changes(standings: CVResults, decision: Decision, gap: Gap) -> str:
    rows = len(standings.problem)
    if decision == "not decided":
        if len({fold for _, fold in standings.complete}) < FOLDS:
            return "Run the missing folds: the gain may change."
        return (
            f"{_rows_needed(standings, gap)} More columns or cleaner targets may change the gain."
        )
    if decision == "nothing to learn":
        return "Add informative columns or more rows."
    if decision == "learn features":
        return (
            "A fixed kernel designed for these columns (a product of kernels, or one on fewer "
            "columns) may match learned features."
        )
    return f"Add rows: feature learning may help with more than {rows:,} rows."
