"""Worker processes: speedup of a compute-bound sweep by a second worker, and overhead per trial.

The sweep has many small networks in groups of different shapes, each long enough to keep one core
busy. One and two workers compute the same records; workers start and compile before the clock
starts. The overhead is measured with 10,000 trials of a few multiply-adds each. It includes
planning, sending and storing, without the run time of programs.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import HiddenProducts, Workload, use_own_program_cache
from unlazy.lab.engines.base import Engine, NullCallback
from unlazy.lab.engines.choice import engine_named
from unlazy.lab.run import run_one
from unlazy.lab.store import Store
from unlazy.lab.study import Rounds, Say, silent
from unlazy.lab.trials import Failure, Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import AntisymmetricInit

ROUNDS = 3
TARGET = 1.7
#: Target overhead per trial in seconds.
ALLOWED = 5e-3
TINY = 10_000


def ran(engine: Engine, trials: list[Trial]) -> None:
    """Run all trials; raise an error if one fails."""
    for found in engine.run(trials, NullCallback()):
        if isinstance(found, Failure):
            raise RuntimeError(f"A trial of the benchmark failed: {found.reason}")


def sweep() -> list[Trial]:
    """Return eight shapes of equal work, so that all workers are busy."""
    shape = Workload("", nets=8, d=30, pairs=50, batch=50, n=2_000, steps=1_500)
    shapes = [dataclasses.replace(shape, n=shape.n + 50 * place) for place in range(8)]
    return [trial for each in shapes for trial in each.trials()]


def gain() -> Comparison:
    """Compare one worker with two."""
    use_own_program_cache()
    trials = sweep()
    with engine_named("processes", workers=1) as one, engine_named("processes", workers=2) as two:
        methods = {}
        for name, engine in (("one worker", one), ("two workers", two)):
            say(f"Workers: starting {name} and compiling …")
            for _ in range(
                2
            ):  # a worker may get a shape in the second run that another had in the first
                ran(engine, trials)
            methods[name] = lambda engine=engine: seconds(lambda: ran(engine, trials))
        times = interleaved(methods, ROUNDS, "Workers")
    return Comparison(
        "two worker processes / one: sweep of 8 shapes",
        "sweep",
        times["two workers"],
        times["one worker"],
        TARGET,
    )


def tiny() -> list[Trial]:
    """Return trials with very little computation."""
    learner = GradientDescent(
        AntisymmetricInit(m=2, w_scale=1.0, b_scale=0.1, a_scale=0.1),
        (Descent({"w": 0.1}, steps=2, batch=4),),
    )
    return [Trial(HiddenProducts(d=4), learner, 8, seed, ()) for seed in range(TINY)]


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A study of given trials, in one round."""

    trials: list[Trial]
    title = "sweep"
    arrays = False

    def rounds(self, store: Store, say: Say = silent) -> Rounds[None]:
        """Yield the trials."""
        yield self.trials


def overhead(name: str, engine: Engine) -> Comparison:
    """Return the overhead per trial in seconds, versus the target."""
    trials = tiny()
    ran(engine, trials[:10])
    spent: list[float] = []
    for index in range(2):
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
            total = seconds(lambda store=store: run_one(Sweep(trials), store, engine))
            computing = sum(record.seconds for record in store.records())
        spent.append((total - computing) / TINY)
        say(
            f"Overhead, {name}: round {index + 1}: {total:.1f} s, of which {computing:.1f} s "
            "computing"
        )
    return Comparison(
        f"overhead of a trial over pure compute / {1000 * ALLOWED:g} ms: {TINY:,} tiny trials, "
        f"{name}",
        "trial",
        spent[1:],  # the first compiles
        [ALLOWED] * (len(spent) - 1),
        1.0,
        "lower",
    )


def run() -> list[Comparison]:
    """Run the speedup, and the overhead in this process and with workers."""
    found = [gain()]
    for name in ("local", "processes"):
        with engine_named(name, workers=None if name == "local" else 2) as engine:
            found.append(overhead(name, engine))
    return found
