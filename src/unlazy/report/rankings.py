"""Our estimators among the published classifiers: a table, plain data, and a ranking with
intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from unlazy.report.palette import ARM_COLOURS, PRINT_STYLE
from unlazy.report.prints import save_figure
from unlazy.studies.ranking import RankingOutcome
from unlazy.tables.yardstick import Standing

#: Published classifiers that are shown beside ours.
SHOWN = 12


def print_ranking(outcome: RankingOutcome, console: Console) -> None:
    """Ours and the best of the published, by mean rank; then tests between ours."""
    _print_standings(outcome.standings, outcome.tables, console)
    for test in outcome.tests:
        console.print(
            f"{test.first} − {test.second}: {test.difference:+.2f} points, {test.won} tables won, "
            f"{test.lost} lost, p = {test.chance:.2g}",
            highlight=False,
        )
    if outcome.comparable != outcome.standings:
        console.print(
            f"Without {outcome.apart} tables whose published accuracies are from a test set:"
        )
        _print_standings(outcome.comparable, outcome.tables - outcome.apart, console)


def _print_standings(found: Sequence[Standing], tables: int, console: Console) -> None:
    table = RichTable(title=f"{tables} tables, published folds; ours in bold", title_justify="left")
    for name in ("classifier", "mean rank", "accuracy (%)", "P90 (%)", "P95 (%)", "PMA (%)"):
        table.add_column(name, justify="left" if name == "classifier" else "right")
    for standing in _shown(found):
        values = (standing.rank, standing.mean, standing.p90, standing.p95, standing.pma)
        name = f"[bold]{standing.name}[/bold]" if standing.ours else standing.name
        table.add_row(name, *(f"{value:.1f}" for value in values))
    console.print(table)


def _shown(found: Sequence[Standing]) -> list[Standing]:
    best = [standing for standing in found if not standing.ours][:SHOWN]
    most = max(
        (standing for standing in found if not standing.ours), key=lambda standing: standing.mean
    )
    wanted = [*best, *([] if most in best else [most])]
    return [standing for standing in found if standing.ours or standing in wanted]


def save_ranking(found: Sequence[Standing], path: Path) -> None:
    """Mean ranks with their intervals over tables."""
    import matplotlib.pyplot as plt

    shown = list(reversed(_shown(found)))
    with plt.rc_context(PRINT_STYLE):
        figure, axes = plt.subplots(figsize=(7, 0.9 + 0.28 * len(shown)), layout="constrained")
        for place, standing in enumerate(shown):
            colour = ARM_COLOURS[1] if standing.ours else ARM_COLOURS[7]
            axes.errorbar(
                standing.rank,
                place,
                xerr=standing.rank_half,
                elinewidth=1,
                fmt="o" if standing.ours else "s",
                color=colour,
            )
            axes.annotate(
                f"{standing.mean:.1f} %",
                (standing.rank, place),
                (0, 4),
                textcoords="offset points",
                fontsize=8,
                color=colour,
            )
        axes.set_yticks(range(len(shown)), [standing.name for standing in shown])
        axes.set_xlabel(
            "mean rank among the 179 published classifiers\n(over each: its mean accuracy)"
        )
        axes.margins(x=0.12)
        save_figure(figure, path)
