"""The command `unlazy scaling`: say what will happen, run what is not in the store, show exponents and crossings, draw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from rich.console import Console

from unlazy.core.errors import unknown
from unlazy.lab import registry as catalogue
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.scaling import MOST_EXAMPLES, Scaling, contender, crossings, dimensions, lay_out, outcomes
from unlazy.lab.store import Store
from unlazy.report.files import replacing
from unlazy.report.live import run_absent
from unlazy.report.palette import PRINT_STYLE
from unlazy.report.scaling import figure, sentences, table
from unlazy.report.tables import terminal


def run_scaling(
    task: str, learners: Sequence[str], vary: str, target: float, seeds: range, store: Store, out: Path, console: Console
) -> dict[str, Any]:
    """Do all of it; what is returned says it as plain data."""
    known: dict[str, Any] = {name: entry.thing for name, entry in catalogue.tasks().items()}
    if task not in known:
        raise unknown("task", task, known)
    named: dict[str, Any] = {name: entry.thing for name, entry in catalogue.learners().items()}
    study = lay_out(known[task], {name: contender(name, named) for name in learners}, dimensions(vary), target=target)
    wanted = {each.key: each for each in study.measurements(seeds)}
    _announce(study, task, seeds, store, console)
    run_absent(list(wanted.values()), store, LocalEngine(), console, what="searches")
    found = outcomes(study, seeds, {key: store.get(key) for key in wanted})
    where = crossings(found)
    console.print(terminal(table(found)))
    for sentence in sentences(where):
        console.print(sentence)
    with matplotlib.rc_context(PRINT_STYLE), replacing(out) as draft:
        figure(found, f"{task}, {len(seeds)} seeds", target).savefig(draft, format=out.suffix.lstrip(".") or "png")
    console.print(f"Figure written to {out}", soft_wrap=True)
    return {
        "task": task,
        "target_error": target,
        "seeds": list(seeds),
        "learners": [each.to_json() for each in found],
        "crossover": [{"first": one, "second": other, "dimension": place} for (one, other), place in where.items()],
    }


def _announce(study: Scaling, task: str, seeds: range, store: Store, console: Console) -> None:
    console.print(
        f"[bold]{task}[/] · examples to an error of {study.target:g} · seeds {seeds[0]} to {seeds[-1]} · store {store.path}", soft_wrap=True
    )
    for row in study.rows:
        beyond = sorted(set(row.predicted) - set(row.run))
        more = f"; predicted only, as it takes more than {MOST_EXAMPLES:,} examples: {', '.join(map(str, beyond))}" if beyond else ""
        console.print(f"  {row.name}: d = {', '.join(map(str, row.run)) or 'none'}{more}", soft_wrap=True)
