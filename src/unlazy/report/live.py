"""Running in front of people: what will happen and how long it takes, a bar while it runs, and what
is kept when it is stopped.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape

from unlazy.lab import scaling
from unlazy.lab.contests import Contest, finish
from unlazy.lab.costs import Costs
from unlazy.lab.engines.base import Engine
from unlazy.lab.exponents import ScalingOutcome
from unlazy.lab.judging import Verdict
from unlazy.lab.outcomes import ContestOutcome
from unlazy.lab.registry import claims
from unlazy.lab.running import Study, absent, incomplete, keep, run
from unlazy.lab.running import study as laid_out
from unlazy.lab.scaling import Answer, Ask, Scaling
from unlazy.lab.stopping import Terminated
from unlazy.lab.store import Store
from unlazy.lab.trials import Runnable
from unlazy.report.progress import ProgressBar, duration
from unlazy.report.tables import print_verdict

#: So many trials that could not be run are named; the store names all.
FAILURES_SHOWN = 5


def run_absent(
    trials: Sequence[Runnable],
    store: Store,
    engine: Engine,
    console: Console,
    *,
    what: str = "trials",
    again: str = "the same command",
) -> None:
    """Run what the store lacks: announced, under a bar, each record kept.

    Ctrl-C says what is kept, and leaves with status 130.
    """
    waiting, total = absent(trials, store), len({trial.key for trial in trials})
    if not waiting:
        console.print(f"All {total} {what} are in the store.")
        return
    engine.costs = Costs(store.costs())
    planned = engine.plan(waiting)
    shapes = f" of {planned.shapes} shapes" if planned.shapes else ""
    kept = (
        f", {total - len(waiting)} of {total} are in the store already"
        if len(waiting) < total
        else ""
    )
    compiling = (
        f", up to {duration(planned.compile_seconds)} more to compile what is not cached; "
        "memory at most "
        f"{planned.memory / 2**30:.1f} GiB a program"
        if planned.shapes
        else ", and more to compile what is not cached"
    )
    console.print(
        f"{len(waiting)} {what}{shapes}{kept}. About {duration(planned.seconds)} to "
        f"run{compiling}.",
        soft_wrap=True,
    )
    bar = ProgressBar(planned, console)
    try:
        with bar:
            keep(waiting, store, engine, bar)
    except KeyboardInterrupt as stop:
        done = len(waiting) - len(absent(waiting, store))
        console.print(
            f"Stopped. {done} of {len(waiting)} {what} are kept: {again} goes on from there."
        )
        sys.exit(_status(stop))
    if bar.programs:
        console.print(f"Compiled {bar.programs} programs in {bar.compile_seconds:.1f} s.")
    if engine.summary:
        console.print(engine.summary, highlight=False, soft_wrap=True)
    tell_failures(waiting, store, console)


def tell_failures(trials: Sequence[Runnable], store: Store, console: Console) -> None:
    """Say which trials could not be run, and why."""
    lacking = {trial.key for trial in absent(trials, store)}
    failed = [failure for key, failure in store.failures().items() if key in lacking]
    if failed:
        console.print(
            f"[red]{len(failed)} of {len(trials)} trials could not be run;[/] the same command "
            "tries them again."
        )
    for failure in failed[:FAILURES_SHOWN]:
        console.print(f"  {failure.key}: {escape(failure.reason)}", highlight=False, soft_wrap=True)
    if len(failed) > FAILURES_SHOWN:
        console.print(f"  … and {len(failed) - FAILURES_SHOWN} more")


def _status(stop: KeyboardInterrupt) -> int:
    """As shells number it: 128 and the signal."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def run_studies(
    studies: list[Study], store: Store, console: Console, *, engine: Engine, fresh: bool
) -> list[Verdict]:
    """Run studies of claims, and print the verdicts."""
    # Of all claims: they may share trials. A user's own is known by its study alone.
    store.register_rules(
        {claim.id: claim.rule for claim in [*claims().values(), *(each.claim for each in studies)]}
    )
    trials = [trial for each in studies for trial in each.trials]
    if fresh:
        store.remove(trial.key for trial in trials)
    names = ", ".join(each.claim.id for each in studies if each.world == "claim")
    seeds = sorted({seed for each in studies for seed in each.seeds})
    console.print(
        f"[bold]{names}[/] · {studies[0].scale} scale · seeds {seeds[0]} to {seeds[-1]} · store "
        f"{store.path}",
        soft_wrap=True,
    )
    run_absent(
        trials,
        store,
        engine,
        console,
        again="the same command without --fresh" if fresh else "the same command",
    )
    lacking = incomplete(studies, store)
    for each in lacking:
        console.print(
            f"[red]{each.claim.id}{' (control)' if each.world == 'control' else ''} is not "
            "judged:[/] trials of it could not be run."
        )
    verdicts = run(
        [each for each in studies if not any(each is other for other in lacking)], store, engine
    )
    for verdict in verdicts:
        print_verdict(verdict, console)
    return verdicts


def run_until_decided(
    studies: list[Study], store: Store, console: Console, *, most: int, engine: Engine, fresh: bool
) -> list[Verdict]:
    """Look at claims with twice as many seeds each time, until they are decided or would take more
    than `most`.

    The j-th look takes the (2^j)-th part of the error, so that all looks together decide wrongly no
    more often than one would.
    """
    found: dict[str, Verdict] = {}
    waiting, look = [each for each in studies if each.world == "claim"], 1
    controls = [each for each in studies if each.world == "control"]
    while waiting:
        again = [
            laid_out(
                each.claim,
                each.scale,
                seeds=len(each.seeds) << (look - 1),
                first_seed=each.seeds[0],
                look=look,
            )
            for each in waiting
        ]
        verdicts = run_studies(
            again + controls, store, console, engine=engine, fresh=fresh and look == 1
        )
        found |= {verdict.claim.id: verdict for verdict in verdicts}
        unsure = {
            v.claim.id
            for v in verdicts
            if v.seen == "undecided" and not v.claim.exact and 2 * len(v.seeds) <= most
        }
        waiting, controls, look = (
            [each for each in waiting if each.claim.id in unsure],
            [],
            look + 1,
        )
        if waiting:
            console.print(
                f"[bold]{len(waiting)} undecided: look {look}, with twice as many seeds.[/]"
            )
    return list(found.values())


def run_contest(
    contest: Contest, store: Store, console: Console, *, engine: Engine
) -> ContestOutcome:
    """Run a contest: first the tuning, then the test of what was chosen."""
    console.print(
        f"[bold]{escape(contest.task)}[/] · {len(contest.learners)} learners · n = "
        f"{', '.join(map(str, contest.sizes))} · seeds "
        f"{contest.seeds[0]} to {contest.seeds[-1]} · {contest.budget} settings each · store "
        f"{store.path}",
        soft_wrap=True,
    )
    run_absent(contest.all_rehearsals, store, engine, console, what="trials to tune")
    run_absent(
        list(contest.finals(store).values()),
        store,
        engine,
        console,
        what="trials to test what was chosen",
    )
    return finish(contest, store)


def run_scaling(
    study: Scaling, store: Store, console: Console, *, engine: Engine
) -> ScalingOutcome:
    """Run a scaling study: nobody knows beforehand how many trials it takes, so each answer is told
    as it comes.
    """
    places = ", ".join(f"{place:g}" for place in study.places)
    console.print(
        f"[bold]{escape(study.task)}[/] · examples to an error of {study.goal:g} at "
        f"{study.field} = {places} · seeds {study.seeds[0]} to "
        f"{study.seeds[-1]} · {study.budget} settings each · store {store.path}",
        soft_wrap=True,
    )
    new = 0

    def run_quietly(trials: Sequence[Runnable], store: Store, engine: Engine) -> None:
        nonlocal new
        waiting = absent(trials, store)
        if not waiting:
            return
        try:
            if console.is_terminal:
                with ProgressBar(engine.plan(waiting), console, transient=True) as bar:
                    keep(waiting, store, engine, bar)
            else:  # a bar that vanishes leaves an empty line in a file
                keep(waiting, store, engine)
        except KeyboardInterrupt as stop:
            console.print(
                "Stopped. What was finished is kept: the same command goes on from there."
            )
            sys.exit(_status(stop))
        new += len(waiting)
        tell_failures(waiting, store, console)

    def tell(ask: Ask, answer: Answer, target: float) -> None:
        reached = int(np.sum(answer.errors[-1] <= target))
        error = float(np.mean(answer.errors[-1]))
        console.print(
            f"  {escape(ask.learner)} at {study.field} = {ask.place:g}, n = "
            f"{answer.sizes[-1]:,}: error {error:.4g}, "
            f"{reached} of {len(study.seeds)} seeds reach {target:g}",
            highlight=False,
            soft_wrap=True,
        )

    found = scaling.run(study, store, engine, keep=run_quietly, told=tell)
    console.print(
        f"{new} trials were run; all others were in the store."
        if new
        else "All trials are in the store."
    )
    return found
