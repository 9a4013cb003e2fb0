"""Running in front of people: what will happen and how long it takes, a bar while it runs, and what is kept when it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from unlazy.lab.contests import Contest, ContestOutcome, outcome_of
from unlazy.lab.engines import Engine, LocalEngine
from unlazy.lab.judging import Verdict
from unlazy.lab.registry import claims
from unlazy.lab.running import Study, absent, keep, run
from unlazy.lab.store import Store
from unlazy.lab.trials import Runnable
from unlazy.report.progress import ProgressBar, duration
from unlazy.report.tables import print_verdict


def engine_for(memory: float | None) -> Engine:
    """An engine whose programs may use so many GiB, or as many as is its default."""
    return LocalEngine(None if memory is None else int(memory * 2**30))


def run_absent(
    trials: Sequence[Runnable],
    store: Store,
    engine: Engine,
    console: Console,
    *,
    what: str = "trials",
    again: str = "the same command",
) -> None:
    """Run what the store lacks: announced, under a bar, each record kept. Ctrl-C says what is kept, and leaves with status 130."""
    waiting, total = absent(trials, store), len({trial.key for trial in trials})
    if not waiting:
        console.print(f"All {total} {what} are in the store.")
        return
    planned = engine.plan(waiting)
    shapes = f" of {planned.shapes} shapes" if planned.shapes else ""
    kept = f", {total - len(waiting)} of {total} are in the store already" if len(waiting) < total else ""
    compiling = (
        f", up to {duration(planned.compile_seconds)} more to compile what is not cached; memory at most {planned.memory / 2**30:.1f} GiB a program"
        if planned.shapes
        else ", and more to compile what is not cached"
    )
    console.print(f"{len(waiting)} {what}{shapes}{kept}. About {duration(planned.seconds)} to run{compiling}.", soft_wrap=True)
    bar = ProgressBar(planned, console)
    try:
        with bar:
            keep(waiting, store, engine, bar)
    except KeyboardInterrupt:
        done = len(waiting) - len(absent(waiting, store))
        console.print(f"Stopped. {done} of {len(waiting)} {what} are kept: {again} goes on from there.")
        sys.exit(130)
    if bar.programs:
        console.print(f"Compiled {bar.programs} programs in {bar.compile_seconds:.1f} s.")


def run_studies(studies: list[Study], store: Store, console: Console, *, memory: float | None, fresh: bool) -> list[Verdict]:
    """Run studies of claims, and print the verdicts."""
    # Of all claims: they may share trials. A user's own is known by its study alone.
    store.register_rules({claim.id: claim.rule for claim in [*claims().values(), *(study.claim for study in studies)]})
    trials = [trial for study in studies for trial in study.trials]
    if fresh:
        store.remove(trial.key for trial in trials)
    engine = engine_for(memory)
    names = ", ".join(study.claim.id for study in studies)
    seeds = sorted({seed for study in studies for seed in study.seeds})
    console.print(
        f"[bold]{names}[/] · {studies[0].scale} scale · seeds {seeds[0]} to {seeds[-1]} · store {store.path}",
        soft_wrap=True,
    )
    run_absent(trials, store, engine, console, again="the same command without --fresh" if fresh else "the same command")
    verdicts = run(studies, store, engine)
    for verdict in verdicts:
        print_verdict(verdict, console)
    return verdicts


def run_contest(contest: Contest, task: str, store: Store, console: Console, *, memory: float | None) -> ContestOutcome:
    """Run a contest: first the tuning, then the test of what was chosen."""
    engine = engine_for(memory)
    console.print(
        f"[bold]{task}[/] · {len(contest.learners)} learners · n = {', '.join(map(str, contest.sizes))} · seeds {contest.seeds[0]} to "
        f"{contest.seeds[-1]} · {contest.budget} settings each · store {store.path}",
        soft_wrap=True,
    )
    run_absent(contest.all_rehearsals, store, engine, console, what="trials to tune")
    run_absent(list(contest.finals(store).values()), store, engine, console, what="trials to test what was chosen")
    return outcome_of(contest, store)
