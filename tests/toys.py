"""Shared test helpers: small tasks, fast trials, and records with given values."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unlazy.core.metrics import Outputs
from unlazy.core.random import bernoulli, normal, orthonormal
from unlazy.lab.run import run
from unlazy.lab.study import silent
from unlazy.lab.trials import ExactComputation, Record, Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import AntisymmetricInit
from unlazy.probes.neurons import Alignment
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch, Family, Task


class HalfspaceTask(Task):
    """x ~ N(0, I/d), y = sign⟨u, x⟩."""

    u: jax.Array

    @property
    def dimension(self):
        return len(self.u)

    def draw(self, n, key):
        x = normal(key, (n, len(self.u))) / jnp.sqrt(len(self.u))
        return Batch(x, self.target(x))

    def target(self, x):
        return jnp.where(x @ self.u >= 0, 1.0, -1.0)

    @property
    def features(self):
        return self.u[None]

    @property
    def chance(self):
        return jnp.asarray(0.5)


class Halfspace(Family):
    """A random direction u in d dimensions."""

    d: int = eqx.field(static=True)

    @property
    def dimension(self):
        return self.d

    def task(self, *, key):
        u = normal(key, (self.d,))
        return HalfspaceTask(u / jnp.linalg.norm(u))


class BlobsTask(Task):
    """Gaussian blobs around orthonormal directions; the label is the nearest direction.

    Two classes have labels ±1.
    """

    centers: jax.Array
    side: int | None = eqx.field(static=True, default=None)

    @property
    def shape(self):
        return (self.side, self.side, 1) if self.side else (self.centers.shape[1],)

    @property
    def dimension(self):
        return self.centers.shape[1]

    @property
    def outputs(self):
        return outputs_of(len(self.centers))

    def draw(self, n, key):
        key_class, key_noise = jax.random.split(key)
        of = jax.random.randint(key_class, (n,), 0, len(self.centers))
        x = 3 * self.centers[of] + 0.5 * normal(key_noise, (n, self.dimension))
        x = x.reshape(n, *self.shape)
        return Batch(x, self.target(x))

    def target(self, x):
        products = x.reshape(len(x), -1) @ self.centers.T
        if len(self.centers) == 2:
            return jnp.where(products[:, 0] > products[:, 1], 1.0, -1.0)
        return jax.nn.one_hot(jnp.argmax(products, axis=1), len(self.centers), dtype=x.dtype)

    @property
    def features(self):
        return self.centers

    @property
    def chance(self):
        return jnp.asarray(1 - 1 / len(self.centers))


def outputs_of(classes):
    return Outputs() if classes == 2 else Outputs("classes", classes)


class Blobs(Family):
    """`classes` classes in d dimensions; with `side`, inputs are images of side × side pixels."""

    d: int = eqx.field(static=True, default=12)
    classes: int = eqx.field(static=True, default=10)
    side: int | None = eqx.field(static=True, default=None)

    @property
    def dimension(self):
        return self.side**2 if self.side else self.d

    @property
    def outputs(self):
        return outputs_of(self.classes)

    def task(self, *, key):
        return BlobsTask(orthonormal(key, self.dimension, self.classes), self.side)


class ProductsTask(Task):
    """x ~ N(0, I), u = ⟨directions, x⟩: the outputs are u_i, u_i·u_j, u_i² − 1 and u_0·u_1·u_2, or
    only the first and u_0·u_1.
    """

    directions: jax.Array
    scalar: bool = eqx.field(static=True)

    @property
    def dimension(self):
        return self.directions.shape[1]

    @property
    def outputs(self):
        return Outputs("reals", None if self.scalar else 15)

    def draw(self, n, key):
        x = normal(key, (n, self.dimension))
        return Batch(x, self.target(x))

    def target(self, x):
        u = x @ self.directions.T
        if self.scalar:
            return u[:, 0] + u[:, 0] * u[:, 1]
        i, j = np.triu_indices(4, 1)
        return jnp.concatenate(
            [u, u[:, i] * u[:, j], u**2 - 1, (u[:, 0] * u[:, 1] * u[:, 2])[:, None]], axis=1
        )

    @property
    def features(self):
        return self.directions

    @property
    def chance(self):
        return jnp.asarray(2.0 if self.scalar else 4 + 6 + 4 * 2 + 1.0)


class Products(Family):
    """Fifteen real outputs, or with `scalar` one real number, of four hidden directions."""

    d: int = eqx.field(static=True, default=6)
    scalar: bool = eqx.field(static=True, default=False)

    @property
    def dimension(self):
        return self.d

    @property
    def outputs(self):
        return Outputs("reals", None if self.scalar else 15)

    def task(self, *, key):
        return ProductsTask(orthonormal(key, self.d, 4), self.scalar)


class BitCount(ExactComputation):
    """The fraction of ones among uniform bits, for each number in `sizes`."""

    sizes: tuple[int, ...] = eqx.field(static=True)
    short: bool = eqx.field(static=True, default=False)

    @property
    def steps(self):
        return self.sizes

    def measure(self, *, key):
        heads = [jnp.mean(bernoulli(key, jnp.full(size, 0.5))) for size in self.sizes]
        return {"heads": np.array(heads[self.short :]), "bits": np.ones((len(self.sizes), 2))}


def small_init(m=4, w_scale=1.0):
    return AntisymmetricInit(m=m, w_scale=w_scale, b_scale=0.3, a_scale=1.0)


def small_learner(rate=0.1, steps=6, batch=8, record=(0, 3), m=4, **options):
    stage = Descent({"w": rate, "b": rate, "a": rate}, steps=steps, batch=batch, **options)
    return GradientDescent(small_init(m), (stage,), record=record)


def toy_trial(seed=0, rate=0.1, d=3, n=32, **options):
    return Trial(
        Halfspace(d), small_learner(rate, **options), n, seed, (Performance(64), Alignment())
    )


class Batched:
    """A study of given trials: one round, and their records in order."""

    title, arrays = "trials", False

    def __init__(self, trials):
        self.trials = trials

    def rounds(self, store, say=silent):
        found = yield self.trials
        return [found[trial.id] for trial in self.trials]


def keep(trials, store, engine, **options):
    """Run trials that are not in the store, and return all records or failures."""
    (found,) = run([Batched(trials)], store, engine, **options)
    return found


def absent(trials, store):
    """Return trials without a record in the store."""
    found = store.find(trials)
    return [trial for trial in trials if trial.id not in found]


def hand_record(
    key="k",
    *,
    fingerprint="f",
    details=None,
    seed=0,
    status="ok",
    steps=(0, 1),
    arrays=None,
    source="here",
    created="2026",
    **measurements,
):
    """Return a record with the given measurements."""
    trial = {
        "family": {"type": "toys.Halfspace"},
        "learner": {"type": "toys.None"},
        "n": 1,
        "seed": seed,
        "probes": [],
    }
    series = {
        name: tuple(values) if isinstance(values, (tuple, list)) else (values,) * len(steps)
        for name, values in measurements.items()
    }
    kept = {name: np.asarray(a) for name, a in (arrays or {}).items()}
    return Record(
        key,
        fingerprint,
        trial,
        status,
        tuple(steps),
        series,
        kept,
        0.5,
        {"unlazy": "0", "source": source, "device": "cpu"},
        created,
        details,
    )
