"""What a contest says, in words: learn features, a kernel is enough, not decided, or nothing to
learn.
"""

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
#: A gain below this is not worth having: points of accuracy, or percent of the target's variance.
MARGIN = 1.0
#: Level of the interval whose upper end must lie below the margin: one-sided 95 %, as that a lead
#: is too small is a one-sided question.
RULED_OUT = 0.90
#: How sure it must be that anything is learned at all.
SIGNAL_LEVEL = 0.99
#: What the decisions are called at the head of a report.
HEADLINES: dict[Decision, str] = {
    "learn features": "This table rewards feature learning.",
    "a kernel is enough": "A kernel is enough for this table.",
    "not decided": "Not decided.",
    "nothing to learn": "Nothing was learned from this table by anyone.",
}
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
    """The decision, the gap between the sides on which it rests, and the words for both."""

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
        """As plain data."""
        return to_plain(self, _KEYS)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        return from_plain(cls, told, _KEYS)


def judge(standings: CVResults) -> AuditDecision:
    """The decision by the rule of this file."""
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
        standings.favourite("fixed"),
        standings.favourite("learned"),
        standings.favourite("tree") if plain else None,
    )
    winner = names[1] if decision == "learn features" else names[0]
    beaten = False
    if names[2] is not None and decision != "nothing to learn" and _plain_is_ahead(standings):
        winner, beaten = names[2], True
    return AuditDecision(
        decision,
        gap,
        signal,
        *names,
        _paragraph(standings, decision, gap, names, beaten),
        _changes(standings, decision, gap),
        winner_code(standings, winner),
        beaten,
    )


def _plain_is_ahead(standings: CVResults) -> bool:
    """Whether the tree ensembles are surely better than either side."""
    plain = standings.selected("tree")
    return all(
        standings.gap(standings.selected(side), plain).low > 0 for side in ("fixed", "learned")
    )


def _paragraph(
    standings: CVResults,
    decision: Decision,
    gap: Gap,
    names: tuple[str, str, str | None],
    beaten: bool,
) -> str:
    problem = standings.problem
    folds = len(standings.complete)
    means = {
        side: float(np.mean([found.loss for found in standings.selected(side)]))
        for side in ("fixed", "learned")
    }
    constant = float(np.mean([found.loss for found in standings.constant()]))
    measure = (
        "wrong on {:.1f} % of held-out rows"
        if problem.kind == "classification"
        else "left with {:.1f} % of the variance on held-out rows"
    )
    unit = "points" if problem.kind == "classification" else "points of variance"
    known = (
        f"Methods with fixed features (best: {names[0]}) were {measure.format(means['fixed'])}, "
        "methods that learn features "
        f"(best: {names[1]}) {measure.format(means['learned'])}, a constant "
        f"{measure.format(constant)}. "
        f"The lead of learned features is {gap.mean:+.1f} {unit} (95 % interval {gap.low:+.1f} "
        f"to {gap.high:+.1f})."
    )
    first = {
        "learn features": f"{HEADLINES[decision]} {known} The lead is real and worth having.",
        "a kernel is enough": f"{HEADLINES[decision]} {known} A lead of a point "
        "or more is ruled out (at 95 %, "
        "one-sided).",
        "not decided": f"{HEADLINES[decision]} {known} That interval "
        "allows both no lead and one worth "
        "having, so this table does not say.",
        "nothing to learn": (
            f"{HEADLINES[decision]} {known} Nothing was surely better than a constant, so the "
            "question has no answer here: the columns may "
            "not tell about the target, or there are too few rows."
        ),
    }[decision]
    others = ""
    if names[2] is not None and decision != "nothing to learn":
        loss = float(np.mean([found.loss for found in standings.selected("tree")]))
        told = ", surely better than both: to predict, take these" if beaten else ""
        others = (
            f" For comparison, the tree ensembles (best: {names[2]}) were "
            f"{measure.format(loss)}{told}."
        )
    parts = f"{folds} of {FOLDS}" if folds < FOLDS else str(folds)
    size = f"{len(problem):,} rows, {len(problem.names)} columns and {parts} held-out parts"
    return (
        f"{first}{others} It rests on {size}; everything was tuned and fitted within the "
        "training rows."
    )


def _changes(standings: CVResults, decision: Decision, gap: Gap) -> str:
    rows = len(standings.problem)
    width = max((gap.high - gap.low) / 2, 1e-9)
    if decision == "not decided":
        distance = max(abs(gap.mean), abs(MARGIN - gap.mean), 0.1)
        needed = int(np.ceil(rows * max((width / distance) ** 2, 1.5) / 100) * 100)
        return (
            f"If the gap stays as it is, about {needed:,} rows would decide. More columns or "
            "cleaner targets may change the gap itself."
        )
    if decision == "nothing to learn":
        return "Columns that tell about the target, or many more rows."
    if decision == "learn features":
        return (
            "A fixed kernel built for these columns (a product of kernels, or one on fewer "
            "columns) could close the gap without learning."
        )
    return (
        f"More rows: features are learned from data, and a gap that is absent at {rows:,} rows "
        "can open later; see the learning curves."
    )
