"""Functions for notebooks and scripts: compare, scaling, reproduce, readings and audit.

    import unlazy
    unlazy.compare("shi2022/task", ["ntk", "shi2022/learner"], n=[300, 1000])
    unlazy.scaling("glasgow2023/task", ["rbf", "sgd"], vary="d=16..64")
    unlazy.reproduce("shi2022/table1", scale="smoke")

Tasks and learners are names, references such as `my.py:Halfspace`, or objects. Without a store,
records are discarded. An engine is an object, or a name as on the command line: "processes",
"dask", "tls://host:port", "slurm".
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require
from unlazy.core.metrics import Kind
from unlazy.lab.claims import Claim, NotRun
from unlazy.lab.engines.base import Engine
from unlazy.lab.engines.choice import engine_named
from unlazy.lab.exponents import ScalingOutcome
from unlazy.lab.judging import Verdict
from unlazy.lab.outcomes import BenchmarkResult
from unlazy.lab.registry import claims, find_claims
from unlazy.lab.rules import DEVELOPMENT, Scale
from unlazy.lab.run import Incomplete, RunCallback, run, run_one
from unlazy.lab.store import Store, opened
from unlazy.lab.study import Study
from unlazy.report.progress import callback_of
from unlazy.studies.claim import UntilDecided, claim_study, null_of, waiting_for_data
from unlazy.studies.from_names import Learners, benchmark_of, study_of
from unlazy.studies.readings import ReadingsOutcome, readings_study
from unlazy.tasks.base import Family

if TYPE_CHECKING:
    from unlazy.studies.audit import AuditOutcome

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class RunSession:
    """Store, engine and options with which studies run."""

    store: Store
    engine: Engine
    callback: RunCallback
    fresh: bool = False
    reuse_older: bool = False

    def run(self, studies: Sequence[Study[T]]) -> list[T | Incomplete[T]]:
        """Run studies and return their outcomes."""
        return run(studies, self.store, self.engine, **self._options)

    def run_one(self, study: Study[T]) -> T:
        """Run one study; raise an error that names failed trials."""
        return run_one(study, self.store, self.engine, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"callback": self.callback, "fresh": self.fresh, "reuse_older": self.reuse_older}


class RunOptions(TypedDict, total=False):
    """Options of all functions that run trials.

    `store` keeps records; without one they are discarded after the call. `engine` is an engine or
    its name. `progress` shows a bar, by default in notebooks and terminals. `fresh` runs all trials
    again. `reuse_older` also uses records made by other code, libraries or data.
    """

    store: Store | Path | str | None
    engine: Engine | str | None
    progress: bool | None
    fresh: bool
    reuse_older: bool


@contextlib.contextmanager
def session(
    store: Store | Path | str | None = None,
    engine: Engine | str | None = None,
    *,
    progress: bool | None = None,
    fresh: bool = False,
    reuse_older: bool = False,
) -> Iterator[RunSession]:
    """Open a store and an engine. Without a store, records are discarded after the session."""
    with opened(store) as place, _engine(engine, place) as runner:
        yield RunSession(place, runner, callback_of(progress), fresh, reuse_older)


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
    **options: Unpack[RunOptions],
) -> BenchmarkResult:
    """Compare learners on a task with the same examples and the same tuning budget.

    `set`: changes of the task, such as "d=100". `options`: see `RunOptions`.
    """
    benchmark = benchmark_of(
        task,
        learners,
        n=n,
        changes=set,
        seeds=seeds,
        first_seed=first_seed,
        budget=budget,
        test=test,
    )
    with session(**options) as place:
        return place.run_one(benchmark)


@renamed_parameters(most="max_n")
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
    max_n: int = 20_000,
    test: int = 4096,
    **options: Unpack[RunOptions],
) -> ScalingOutcome:
    """Measure how many examples learners need for a target error as a task parameter grows.

    `vary` is "d=16..64" or {"d": [16, 32]}. `options`: see `RunOptions`.
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
        max_n=max_n,
        test=test,
    )
    with session(**options) as place:
        return place.run_one(study)


@renamed_parameters(null="shuffle_labels", most_seeds="max_seeds")
def reproduce(
    ids: str | Iterable[str],
    *,
    scale: Scale = "laptop",
    seeds: int | None = None,
    first_seed: int | None = None,
    controls: bool = False,
    shuffle_labels: bool = False,
    until_decided: bool = False,
    max_seeds: int = 40,
    reading: str | None = None,
    **options: Unpack[RunOptions],
) -> list[Verdict]:
    """Test claims, given by ids or patterns such as "shi2022/*", and return verdicts.

    By default, held-out seeds are used. `controls`: also run negative controls.
    `shuffle_labels`: train all learners on shuffled labels instead. `until_decided`: add seeds
    until each claim is decided, at most `max_seeds`. `reading`: test the claims under this reading
    instead of the one that is judged. `options`: see `RunOptions`.
    """
    studies, rows = claim_studies(
        find_claims([ids] if isinstance(ids, str) else ids),
        scale,
        seeds=seeds,
        first_seed=first_seed,
        controls=controls,
        shuffle_labels=shuffle_labels,
        until_decided=until_decided,
        max_seeds=max_seeds,
        reading=reading,
    )
    with session(**options) as place:
        outcomes = judged(studies, place)
    for each in rows:
        warnings.warn(f"{each.id} was not run: {each.reason}", stacklevel=2)
    for outcome in outcomes:
        if isinstance(outcome, Incomplete):
            warnings.warn(f"{outcome}", stacklevel=2)
    return [outcome for outcome in outcomes if isinstance(outcome, Verdict)]


def readings(
    ids: str | Claim | Iterable[str | Claim],
    *,
    scale: Scale = "laptop",
    seeds: int = 5,
    first_seed: int = DEVELOPMENT,
    search: bool = False,
    names: Sequence[str] = (),
    **options: Unpack[RunOptions],
) -> ReadingsOutcome:
    """Compare the readings of claims on development seeds, and choose one by a fixed rule.

    `ids`: claims, ids or patterns. `names`: only these readings. `search`: all combinations of the
    open settings, by successive halving. `options`: see `RunOptions`.
    """
    given = [ids] if isinstance(ids, (str, Claim)) else list(ids)
    named = find_claims([each for each in given if isinstance(each, str)])
    study = readings_study(
        [*named, *(each for each in given if isinstance(each, Claim))],
        scale,
        seeds=seeds,
        first_seed=first_seed,
        search=search,
        names=names,
    )
    with session(**options) as place:
        return place.run_one(study)


@renamed_parameters(contenders="methods")
def audit(
    X: Any,
    y: Any = None,
    *,
    task: Kind | None = None,
    seconds: float | None = None,
    methods: Sequence[str] | None = None,
    explain: bool = True,
    name: str = "the table",
    **options: Unpack[RunOptions],
) -> AuditOutcome:
    """Test whether feature learning helps on a tabular dataset.

    `X` is an array, a data frame or a `Table`; `y` is the target, or the name of a column of the
    data frame. `seconds` is the time limit. `options`: see `RunOptions`; with a `store`, an
    interrupted audit resumes.
    """
    from unlazy.studies.audit import audit_of  # scikit-learn takes long to import

    study = audit_of(
        X,
        y,
        task=task,
        seconds=seconds,
        methods=methods,
        explain=explain,
        name=name,
    )
    with session(**options) as place:
        return place.run_one(study)


def judged(
    studies: Sequence[Study[Verdict]], place: RunSession
) -> list[Verdict | Incomplete[Verdict]]:
    """Register the acceptance criteria of all claims, then run studies and return verdicts."""
    place.store.register_rules({claim.id: claim.rule for claim in claims().values()})
    return place.run(studies)


def claim_studies(
    chosen: Iterable[Claim],
    scale: Scale,
    *,
    seeds: int | None = None,
    first_seed: int | None = None,
    controls: bool = False,
    shuffle_labels: bool = False,
    until_decided: bool = False,
    max_seeds: int = 40,
    reading: str | None = None,
) -> tuple[list[Study[Verdict]], list[NotRun]]:
    """Return the studies of claims, and rows for claims whose data are missing."""
    require(
        not (shuffle_labels and controls),
        "`shuffle_labels` and `controls` exclude each other.",
    )
    wanted = [other for claim in chosen if (other := null_of(claim) if shuffle_labels else claim)]
    studied = [
        claim_study(
            claim,
            scale,
            seeds=seeds,
            first_seed=first_seed,
            with_control=controls,
            reading=reading,
        )
        for claim in wanted
    ]
    able, rows = waiting_for_data(studied)
    studies: list[Study[Verdict]] = [
        UntilDecided(study, max_seeds) if until_decided else study for study in able
    ]
    return studies, rows


@contextlib.contextmanager
def _engine(engine: Engine | str | None, store: Store) -> Iterator[Engine]:
    """Yield the given engine, or open one by its name and close it afterwards."""
    if isinstance(engine, Engine):
        yield engine
        return
    with engine_named(engine or "local", store=str(store.path)) as found:
        yield found
