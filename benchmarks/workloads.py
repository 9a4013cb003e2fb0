"""Workloads: a task in the full input space, and two sizes of two-layer networks trained on it."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import tempfile

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from benchmarks.timing import seconds
from unlazy.core.random import normal
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Record, Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import AntisymmetricInit
from unlazy.tasks.base import Batch, Family, Task


class HiddenProduct(Task):
    """x ~ N(0, I/d) fills the space; y is the sign of the product of two hidden coordinates."""

    hidden: Float[Array, " 2"]
    d: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        """Size d of an input."""
        return self.d

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw Gaussian inputs and their labels."""
        x = normal(key, (n, self.d)) / jnp.sqrt(self.d)
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """The label."""
        return jnp.where(x[:, self.hidden[0]] * x[:, self.hidden[1]] > 0, 1.0, -1.0)

    @property
    def features(self) -> Float[Array, "2 d"]:
        """The two coordinate directions."""
        return jax.nn.one_hot(self.hidden, self.d)

    @property
    def chance(self) -> Float[Array, ""]:
        """Both labels are equally likely."""
        return jnp.asarray(0.5)


class HiddenProducts(Family):
    """Products of two random coordinates of R^d."""

    d: int = eqx.field(static=True, kw_only=True)

    @property
    def dimension(self) -> int:
        """Size d of an input."""
        return self.d

    def task(self, *, key: PRNGKeyArray) -> HiddenProduct:
        """Draw the two coordinates."""
        return HiddenProduct(jax.random.permutation(key, self.d)[:2], self.d)


@dataclasses.dataclass(frozen=True)
class Workload:
    """`nets` two-layer truncated-ReLU networks of 2·`pairs` neurons, one task each, trained by
    plain SGD on the hinge loss.
    """

    name: str
    nets: int
    d: int
    pairs: int
    batch: int
    n: int
    steps: int
    rates: tuple[tuple[str, float], ...] = (("w", 0.5), ("b", 0.01), ("a", 0.01))
    scales: tuple[float, float, float] = (1.0, 0.5, 0.1)

    @property
    def model_steps(self) -> int:
        """Gradient steps over all networks."""
        return self.nets * self.steps

    def trials(self) -> list[Trial]:
        """Return the trials: only the last step is recorded, and nothing is measured."""
        w, b, a = self.scales
        learner = GradientDescent(
            AntisymmetricInit(m=self.pairs, w_scale=w, b_scale=b, a_scale=a),
            (Descent(dict(self.rates), steps=self.steps, batch=self.batch, loss="hinge"),),
        )
        return [
            Trial(HiddenProducts(d=self.d), learner, self.n, seed, ()) for seed in range(self.nets)
        ]


#: Many small networks in parallel, and one network that uses all cores.
SMALL = Workload(
    "64 nets, d=30, 100 neurons, batch 50", nets=64, d=30, pairs=50, batch=50, n=5_000, steps=1_000
)
LARGE = Workload(
    "1 net, d=500, 600 neurons, batch 1000",
    nets=1,
    d=500,
    pairs=300,
    batch=1_000,
    n=10_000,
    steps=200,
)
WORKLOADS = (SMALL, LARGE)


class EngineRun:
    """Repeated runs of a workload in the engine; `compile_seconds`: time of compilation per run."""

    def __init__(self, workload: Workload) -> None:
        self.trials = workload.trials()
        self.compile_seconds: list[float] = []
        self.records: list[Record] = []

    def __call__(self) -> float:
        """Return the seconds of one run without compilation, including planning, drawing the data
        and building records.
        """
        engine = LocalEngine()
        total = seconds(lambda: self._run(engine))
        self.compile_seconds.append(engine.compile_seconds)
        return total - engine.compile_seconds

    def _run(self, engine: LocalEngine) -> None:
        self.records = list(engine.run(self.trials))


@functools.cache
def use_own_program_cache() -> None:
    """Keep compiled programs in a new folder, so that compilation is timed and the user's cache is
    not changed.
    """
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    jax.config.update("jax_compilation_cache_dir", folder.name)
