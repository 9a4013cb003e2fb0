"""Studies from names: tasks, learners and values as commands and notebooks give them."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unlazy.core.errors import BadInput, require, require_whole
from unlazy.lab.registry import described, family_of, learner_of
from unlazy.learners.base import Learner
from unlazy.studies.benchmark import Benchmark
from unlazy.studies.scaling import Scaling, numeric, places_of
from unlazy.tasks.base import Family

#: One learner or several: names, learners or scikit-learn estimators, or a mapping from labels.
Learners = str | Learner | Sequence[Any] | Mapping[str, Any]
#: Changes of a task's parameters: texts such as "d=6", or values by name.
Changes = str | Iterable[str] | Mapping[str, Any]


def benchmark_of(
    task: str | Family,
    learners: Learners,
    *,
    n: int | Iterable[int],
    changes: Changes = (),
    seeds: int,
    first_seed: int,
    budget: int,
    test: int,
) -> Benchmark:
    """Return a comparison, with its command if task and learners are given by name."""
    changes = _texts(changes)
    family, name = _task(task, changes)
    entries = labeled(learners)
    sizes = tuple(sorted({*n})) if isinstance(n, (Sequence, np.ndarray, range, set)) else (n,)
    for each in sizes:
        require_whole("`n`", each)
    _require_counts(seeds=seeds, budget=budget, test=test, first_seed=first_seed)
    sizes = tuple(map(int, sizes))
    options = [
        *("--n", ",".join(map(str, sizes)), "--seeds", seeds, "--first-seed", first_seed),
        *("--budget", budget, "--test", test),
    ]
    return Benchmark(
        family,
        entries,
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
    changes: Changes = (),
    seeds: int,
    first_seed: int,
    budget: int,
    max_n: int,
    test: int,
) -> Scaling:
    """Return a scaling study, with its command if task and learners are given by name."""
    changes = _texts(changes)
    family, name = _task(task, changes)
    _require_counts(seeds=seeds, budget=budget, max_n=max_n, test=test, first_seed=first_seed)
    if isinstance(vary, str):
        field, places = places_of(family, vary, name)
    else:
        require(len(vary) == 1, f"`vary` must name one task parameter, got {len(vary)}.")
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
        *("--budget", budget, "--max-n", max_n, "--test", test),
    ]
    return Scaling(
        family,
        field,
        places,
        labeled(learners),
        tuple(range(first_seed, first_seed + seeds)),
        target=target,
        budget=budget,
        max_n=max_n,
        test=test,
        task=name,
        command=_command("scaling", task, changes, learners, options),
    )


def _task(task: str | Family, changes: tuple[str, ...]) -> tuple[Family, str]:
    """Return a family and its name."""
    if isinstance(task, str):
        return family_of(task, changes), task + (f" with {', '.join(changes)}" if changes else "")
    require(
        not changes,
        "`set` needs a task given by name; change a family with dataclasses.replace.",
    )
    require(
        isinstance(task, Family),
        f"A task must be a name or a Family, got {described(task)}. Arrays and data frames are "
        "compared by unlazy.audit(X, y), rows of a file by its name and column, 'table.csv:y'.",
    )
    numbers = {f.name: getattr(task, f.name) for f in dataclasses.fields(task)}
    values = ", ".join(
        f"{name}={value}"
        for name, value in numbers.items()
        if isinstance(value, (bool, int, float, str))
    )
    return task, f"{type(task).__name__}({values})"


def labeled(learners: Learners) -> dict[str, Learner]:
    """Return learners by their labels in tables: the name after a colon if it is unique, or the
    name of the class.
    """
    if isinstance(learners, Mapping):
        return {label: _learner(each) for label, each in learners.items()}
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
        found[unique] = _learner(each)
    return found


def _learner(given: Any) -> Learner:
    """Return a learner from its name, a learner, or an estimator with `fit` and `predict`."""
    if isinstance(given, str):
        return learner_of(given)
    if isinstance(given, Learner):
        return given
    if not isinstance(given, type) and hasattr(given, "fit") and hasattr(given, "predict"):
        from unlazy.learners.adapters import ScikitLearner

        return ScikitLearner(given)
    raise BadInput(
        f"A learner must be a name, a Learner or a scikit-learn estimator, got {described(given)}."
        + (f" Give an instance: {given.__name__}()." if isinstance(given, type) else "")
        + " A network of your own is adapted as docs/howto/own-learner shows."
    )


def _listed(learners: Learners) -> list[Any]:
    if isinstance(learners, Sequence) and not isinstance(learners, str):
        return list(learners)
    return [learners]


def _texts(changes: Changes) -> tuple[str, ...]:
    """Return changes such as {"d": 6} or ["d=6"] as texts."""
    if isinstance(changes, Mapping):
        words = {True: "true", False: "false"}
        return tuple(
            f"{name}={words[value] if isinstance(value, bool) else value}"
            for name, value in changes.items()
        )
    return (changes,) if isinstance(changes, str) else tuple(changes)


def _require_counts(*, first_seed: int, **counts: int) -> None:
    for name, value in counts.items():
        require_whole(f"`{name}`", value)
    require(
        isinstance(first_seed, (int, np.integer)) and first_seed >= 0,
        f"`first_seed` must be an integer ≥ 0, got {first_seed!r}.",
    )


def _command(
    verb: str, task: Any, changes: tuple[str, ...], learners: Learners, options: list[Any]
) -> str:
    """Return the equivalent command; empty if an object without a name was given."""
    given = list(learners.values()) if isinstance(learners, Mapping) else _listed(learners)
    if not all(isinstance(each, str) for each in [task, *given]):
        return ""
    words = ["unlazy", verb, task, *(word for change in changes for word in ("--set", change))]
    words += [word for name in given for word in ("--learner", name)]
    return shlex.join(map(str, [*words, *options]))
