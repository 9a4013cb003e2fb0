"""For notebooks and scripts: contests, scaling studies and claims by one call each.

    import unlazy
    unlazy.compare("shi2022/task", ["ntk", "shi2022/learner"], n=[300, 1000])
    unlazy.scaling("glasgow2023/task", ["rbf", "sgd"], vary="d=16..64")
    unlazy.reproduce("shi2022/table1", scale="smoke")

Tasks and learners are names, places such as `my.py:Halfspace`, or the things themselves. Without a
store, nothing is kept. An engine is an object, or a name as on the command line: "processes",
"dask", "tcp://host:port", "slurm".
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unlazy.core.errors import BadInput, require
from unlazy.lab import contests, running
from unlazy.lab import scaling as scalings
from unlazy.lab.contests import Contest
from unlazy.lab.engines.base import Engine
from unlazy.lab.engines.choice import engine_named
from unlazy.lab.exponents import ScalingOutcome
from unlazy.lab.judging import Verdict
from unlazy.lab.outcomes import ContestOutcome
from unlazy.lab.registry import family_of, find_claims, learner_of
from unlazy.lab.rules import DEVELOPMENT, Scale
from unlazy.lab.scaling import Scaling, numeric, places_of
from unlazy.lab.store import Store
from unlazy.learners.base import Learner
from unlazy.tasks.base import Family

#: A learner, or several: by names, as they are, or by labels of one's own.
Learners = str | Learner | Sequence[str | Learner] | Mapping[str, str | Learner]


def compare(
    task: str | Family,
    learners: Learners,
    *,
    n: int | Iterable[int] = 1000,
    set: Iterable[str] = (),
    seeds: int = 5,
    first_seed: int = DEVELOPMENT,
    budget: int = 24,
    test: int = 10_000,
    store: Store | Path | str | None = None,
    engine: Engine | str | None = None,
) -> ContestOutcome:
    """Let learners compete on a task: the same examples and the same tuning budget for each.

    `set`: changes of the task, as "d=100".
    """
    contest = contest_of(
        task,
        learners,
        n=n,
        changes=set,
        seeds=seeds,
        first_seed=first_seed,
        budget=budget,
        test=test,
    )
    with opened(store) as place, _engine(engine, place) as runner:
        return contests.run(contest, place, runner)


def scaling(
    task: str | Family,
    learners: Learners,
    *,
    vary: str | Mapping[str, Iterable[float]],
    target_error: float | None = None,
    set: Iterable[str] = (),
    seeds: int = 3,
    first_seed: int = DEVELOPMENT,
    budget: int = 6,
    most: int = 20_000,
    test: int = 4096,
    store: Store | Path | str | None = None,
    engine: Engine | str | None = None,
) -> ScalingOutcome:
    """Measure how many examples learners need for a target error as a number of the task grows:
    `vary` is "d=16..64" or {"d": [16, 32]}.
    """
    study = study_of(
        task,
        learners,
        vary=vary,
        target=target_error,
        changes=set,
        seeds=seeds,
        first_seed=first_seed,
        budget=budget,
        most=most,
        test=test,
    )
    with opened(store) as place, _engine(engine, place) as runner:
        return scalings.run(study, place, runner)


def reproduce(
    ids: str | Iterable[str],
    *,
    scale: Scale = "laptop",
    seeds: int | None = None,
    first_seed: int | None = None,
    controls: bool = False,
    store: Store | Path | str | None = None,
    engine: Engine | str | None = None,
) -> list[Verdict]:
    """Run claims, by their ids or patterns such as "shi2022/*", and judge them, by default on
    judging seeds. `controls`: theirs too.
    """
    claims = find_claims([ids] if isinstance(ids, str) else ids)
    studies = [running.study(claim, scale, seeds=seeds, first_seed=first_seed) for claim in claims]
    if controls:
        studies += running.controls_of(studies)
    with opened(store) as place, _engine(engine, place) as runner:
        return running.run(studies, place, runner)


@contextlib.contextmanager
def opened(store: Store | Path | str | None) -> Iterator[Store]:
    """A store that is open, is opened here, or lives only as long as it is needed."""
    if isinstance(store, Store):
        yield store
    elif store is not None:
        with Store(store) as found:
            yield found
    else:
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as found:
            yield found


@contextlib.contextmanager
def _engine(engine: Engine | str | None, store: Store) -> Iterator[Engine]:
    """An engine that was handed over, or one by its name that lives only as long as it is
    needed.
    """
    if isinstance(engine, Engine):
        yield engine
        return
    with engine_named(engine or "local", store=str(store.path)) as found:
        yield found


def contest_of(
    task: str | Family,
    learners: Learners,
    *,
    n: int | Iterable[int],
    changes: Iterable[str] = (),
    seeds: int,
    first_seed: int,
    budget: int,
    test: int,
) -> Contest:
    """Lay out a contest; where all is given by names, it knows the command that makes it."""
    changes = tuple(changes)
    family, name = _task(task, changes)
    entrants = labelled(learners)
    sizes = (n,) if isinstance(n, int) else tuple(sorted({*n}))
    options = [
        *("--n", ",".join(map(str, sizes)), "--seeds", seeds, "--first-seed", first_seed),
        *("--budget", budget, "--test", test),
    ]
    return Contest(
        family,
        entrants,
        sizes,
        tuple(range(first_seed, first_seed + seeds)),
        budget=budget,
        test=test,
        task=name,
        command=_command("compare", task, changes, learners, options),
    )


def study_of(
    task: str | Family,
    learners: Learners,
    *,
    vary: str | Mapping[str, Iterable[float]],
    target: float | None,
    changes: Iterable[str] = (),
    seeds: int,
    first_seed: int,
    budget: int,
    most: int,
    test: int,
) -> Scaling:
    """Lay out a scaling study; where all is given by names, it knows the command that makes it."""
    changes = tuple(changes)
    family, name = _task(task, changes)
    if isinstance(vary, str):
        field, places = places_of(family, vary, name)
    else:
        require(len(vary) == 1, f"One number of the task varies, but {len(vary)} were given.")
        ((field, values),) = vary.items()
        places = numeric(field, tuple(values))
    written = f"{field}={','.join(map(str, places))}"
    options = [
        *(
            "--vary",
            vary if isinstance(vary, str) else written,
            *(() if target is None else ("--target-error", target)),
        ),
        *("--seeds", seeds, "--first-seed", first_seed),
        *("--budget", budget, "--most", most, "--test", test),
    ]
    return Scaling(
        family,
        field,
        places,
        labelled(learners),
        tuple(range(first_seed, first_seed + seeds)),
        target=target,
        budget=budget,
        most=most,
        test=test,
        task=name,
        command=_command("scaling", task, changes, learners, options),
    )


def _task(task: str | Family, changes: tuple[str, ...]) -> tuple[Family, str]:
    """The family, and what it is called."""
    if isinstance(task, str):
        return family_of(task, changes), task + (f" with {', '.join(changes)}" if changes else "")
    require(
        not changes,
        "Changes belong to a task that is given by its name; change the family itself with "
        "dataclasses.replace.",
    )
    numbers = {f.name: getattr(task, f.name) for f in dataclasses.fields(task)}
    told = ", ".join(
        f"{name}={value}"
        for name, value in numbers.items()
        if isinstance(value, (bool, int, float, str))
    )
    return task, f"{type(task).__name__}({told})"


def labelled(learners: Learners) -> dict[str, Learner]:
    """Learners by the labels they have in tables: what follows the colon of a place where that is
    unique, or the name of the class.
    """
    if isinstance(learners, Mapping):
        return {
            label: learner_of(each) if isinstance(each, str) else each
            for label, each in learners.items()
        }
    given = _listed(learners)
    short = [
        each.rpartition(":")[2] if isinstance(each, str) else type(each).__name__ for each in given
    ]
    found: dict[str, Learner] = {}
    for each, label in zip(given, short, strict=True):
        unique = label
        if short.count(label) > 1:
            unique = (
                each
                if isinstance(each, str)
                else f"{label} {sum(known.startswith(label) for known in found) + 1}"
            )
        if unique in found:
            raise BadInput(f"The learner {unique} was given twice.")
        found[unique] = learner_of(each) if isinstance(each, str) else each
    return found


def _listed(learners: Learners) -> list[str | Learner]:
    return [learners] if isinstance(learners, (str, Learner)) else list(learners)


def _command(
    verb: str, task: Any, changes: tuple[str, ...], learners: Learners, options: list[Any]
) -> str:
    """What makes it again in a terminal; nothing where a thing was handed over that has no name."""
    given = list(learners.values()) if isinstance(learners, Mapping) else _listed(learners)
    if not all(isinstance(each, str) for each in [task, *given]):
        return ""
    words = ["unlazy", verb, task, *(word for change in changes for word in ("--set", change))]
    words += [word for name in given for word in ("--learner", name)]
    return shlex.join(map(str, [*words, *options]))
