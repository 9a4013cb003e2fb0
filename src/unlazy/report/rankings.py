"""UCI rankings as views: our estimators among the published classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from unlazy.report.figures import save_plot
from unlazy.report.view import View, ViewPlot, ViewSeries, ViewTable
from unlazy.studies.ranking import RankingOutcome
from unlazy.tables.uci_benchmark import PairedTest, Standing

#: Published classifiers that are shown next to ours.
SHOWN = 12


def view(ranking: RankingOutcome) -> View:
    """Return the view of a ranking: ours and the best of the published, by mean rank."""
    shown = _shown(ranking.standings)
    ours = [standing for standing in shown if standing.ours]
    published = [standing for standing in shown if not standing.ours]
    best = max(published, key=lambda each: each.mean)
    return View(
        title=f"{ranking.tables} UCI tables, published folds",
        takeaway=f"{ours[0].name} has mean rank {ours[0].rank:.1f} and accuracy "
        f"{ours[0].mean:.1f} %; best published: rank {published[0].rank:.1f} "
        f"({published[0].name}), accuracy {best.mean:.1f} % ({best.name}).",
        tables=(_table(shown),),
        plots=(_plot(shown),),
        lines=tuple((f"{t.first} − {t.second}", told(t)) for t in ranking.tests),
        parts=_comparable(ranking),
        kind="Rankings",
        facts={"tables": str(ranking.tables), "best of ours": ours[0].name},
        name="uci-ranking",
    )


def _comparable(ranking: RankingOutcome) -> tuple[View, ...]:
    """Return the ranking without tables whose published accuracies are from a test set."""
    if ranking.comparable == ranking.standings:
        return ()
    title = f"Without {ranking.apart} tables whose published accuracies are from a test set"
    return (View(title, tables=(_table(_shown(ranking.comparable)),)),)


def _table(shown: Sequence[Standing]) -> ViewTable:
    rows = tuple(
        (
            f"{each.name} (ours)" if each.ours else each.name,
            *(f"{v:.1f}" for v in (each.rank, each.mean, each.p90, each.p95, each.pma)),
        )
        for each in shown
    )
    columns = ("classifier", "mean rank", "accuracy (%)", "P90 (%)", "P95 (%)", "PMA (%)")
    caption = "P90, P95: tables with at least 90 or 95 % of the best accuracy; PMA: mean of it."
    return ViewTable(columns, rows, "Mean rank", caption, "lrrrrr")


def told(test: PairedTest) -> str:
    """Return a paired test in words."""
    return (
        f"{test.difference:+.2f} points, {test.won} tables won, {test.lost} lost, "
        f"Wilcoxon's p = {test.chance:.2g}"
    )


def _plot(shown: Sequence[Standing]) -> ViewPlot:
    series = []
    for name, ours in (("ours", True), ("published", False)):
        mine = [each for each in shown if each.ours == ours]
        halves = [each.rank_half if math.isfinite(each.rank_half) else 0.0 for each in mine]
        series.append(
            ViewSeries(
                name,
                tuple(each.name for each in mine),
                tuple(each.rank for each in mine),
                tuple(each.rank - half for each, half in zip(mine, halves, strict=True)),
                tuple(each.rank + half for each, half in zip(mine, halves, strict=True)),
                mark="points",
                kind="ours" if ours else "others",
                text=tuple(f"{each.mean:.1f} %" for each in mine),
            )
        )
    return ViewPlot(
        "Mean rank among the 179 published classifiers",
        "classifier",
        "mean rank, with its 95 % interval over tables; above each: mean accuracy",
        tuple(series),
        categories=tuple(each.name for each in shown),
        name="ranking",
    )


def _shown(found: Sequence[Standing]) -> list[Standing]:
    best = [standing for standing in found if not standing.ours][:SHOWN]
    most = max(
        (standing for standing in found if not standing.ours), key=lambda standing: standing.mean
    )
    wanted = [*best, *([] if most in best else [most])]
    return [standing for standing in found if standing.ours or standing in wanted]


def save_ranking(found: Sequence[Standing], path: Path) -> None:
    """Write the figure of mean ranks, and its numbers."""
    save_plot(_plot(_shown(found)), path)
