"""Learning curves in one trial: fits to growing prefixes of one sample.

Recorded steps are numbers of examples.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.learners.base import SEEN, Call, Keys, Learner, Trace, at_once, keys_of
from unlazy.learners.holdout import with_sample
from unlazy.learners.kernel import KernelModel
from unlazy.networks.base import Model, Scores
from unlazy.solvers.exact import prefix_coefficients
from unlazy.tasks.base import Batch, Family, Sampler, draw


def _sizes(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _require_sizes(sizes: tuple[int, ...]) -> None:
    require(
        all(size > 0 for size in sizes) and list(sizes) == sorted(set(sizes)),
        f"sizes must be positive and increasing, got {sizes}.",
    )


class PrefixRidge(Learner):
    """Kernel ridge regression f(x) = Σ_i k(x, x_i)·α_i on prefixes of one sample.

    One Cholesky factor serves all prefixes. `sizes` up to n are used; by default they run from n/4
    to n with a relative distance of about `fineness`. `ridge` is a multiple of the mean of k(x, x).
    Inputs are not scaled, and the mean label is penalized.
    """

    kernel: Kernel
    ridge: float = eqx.field(converter=float, default=1e-6)
    sizes: tuple[int, ...] = eqx.field(static=True, default=(), converter=_sizes, kw_only=True)
    fineness: float = eqx.field(converter=float, default=0.01, kw_only=True)

    def __check_init__(self) -> None:
        _require_sizes(self.sizes)
        require(0 < self.fineness < 1, f"fineness must be in (0, 1), got {self.fineness}.")

    @property
    def on_host(self) -> bool:
        return True

    def recorded(self, n: int) -> tuple[int, ...]:
        if self.sizes:
            return tuple(size for size in self.sizes if size <= n)
        back = np.arange(int(math.log(4) / self.fineness), -1, -1)
        return tuple(
            np.unique(np.maximum(1, np.round(n * np.exp(-self.fineness * back))))
            .astype(int)
            .tolist()
        )

    def examples_at(self, step: int, n: int) -> int:
        return step

    def work(self, n: int, r: int) -> float:
        """Estimate the factorization in double precision and two Gram matrices."""
        return n**3 / 3 + 2.0 * n * n * (r + 60)

    def prediction_work(self, d: int) -> float:
        """Return 0, because `work` includes predictions, whose cost depends on n."""
        return 0.0

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        sizes = self.recorded(n)
        require(bool(sizes), f"Of the sizes {self.sizes} none is at most n={n}.")
        sample = draw(sampler, n, keys_of(key)[1])
        x = np.asarray(sample.x if sampler.basis is None else sample.x @ sampler.basis, np.float64)
        x = x.reshape(len(x), -1)[: sizes[-1]]
        # Small ridges are below the rounding errors of single precision.
        with jax.enable_x64(True):
            K = np.asarray(gram(self.kernel, x))
        ridge = self.ridge * float(np.mean(np.diagonal(K)))
        coefficients = prefix_coefficients(
            K, np.asarray(sample.y, np.float64)[: sizes[-1]], ridge, sizes
        )
        models = KernelModel(
            self.kernel, x, 1.0, coefficients, np.zeros((len(sizes), *coefficients.shape[2:]))
        )
        # The residual of a ridge regression is λ·α.
        squares = (
            0.5
            * np.sum(np.square(ridge * coefficients).reshape(len(sizes), -1), axis=1)
            / np.array(sizes)
        )
        return Trace(models, jnp.asarray(squares), Batch(sample.x[:SEEN], sample.y[:SEEN]), sizes)


class OnPrefixes(Learner):
    """The last models of a learner fitted to the first examples of one sample, for each size."""

    learner: Learner
    sizes: tuple[int, ...] = eqx.field(static=True, converter=_sizes)

    @classmethod
    def of(cls, learner: Learner, sizes: Any) -> Self:
        """Wrap a learner, in its own precision."""
        return cls(learner, sizes, precision=learner.precision)

    def __check_init__(self) -> None:
        _require_sizes(self.sizes)
        require(bool(self.sizes), "sizes must not be empty.")
        require(
            not self.learner.draws_fresh,
            "OnPrefixes requires a fixed sample. For fresh data use `record` instead.",
        )
        require(
            self.precision == self.learner.precision,
            "OnPrefixes must have the precision of its learner; use `OnPrefixes.of`.",
        )

    @property
    def on_host(self) -> bool:
        return self.learner.on_host

    def suited(self, family: Family) -> Self:
        return dataclasses.replace(self, learner=self.learner.suited(family))

    def suited_to_outputs(self, outputs: Outputs) -> Self:
        return dataclasses.replace(self, learner=self.learner.suited_to_outputs(outputs))

    def suits(self, outputs: Outputs) -> bool:
        return self.learner.suits(outputs)

    def recorded(self, n: int) -> tuple[int, ...]:
        return tuple(size for size in self.sizes if size <= n)

    def examples_at(self, step: int, n: int) -> int:
        return step

    def work(self, n: int, r: int) -> float:
        return sum(self.learner.work(size, r) for size in self.recorded(n))

    def prediction_work(self, d: int) -> float:
        return self.learner.prediction_work(d)

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        return self.suited_to_outputs(sampler.outputs).fit_in_parts(sampler, n, key, at_once)

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        """Fit to each prefix of the same sample, in the parts of the learner."""
        sizes = self.recorded(n)
        require(bool(sizes), f"Of the sizes {self.sizes} none is at most n={n}.")
        # On the host, `call` does not compile the draw.
        whole = (
            draw(sampler, sizes[-1], keys_of(key)[1])
            if self.on_host
            else call(_Whole(sizes[-1]), sampler, key)
        )
        cut = with_sample(sampler, whole)
        result: Trace = call(_Curve(sizes), tuple(self.learner.fit_prefixes(cut, sizes, key, call)))
        return result


class _Whole(eqx.Module):
    """Draw the sample of a key."""

    n: int = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> Batch:
        return sampler.draw(self.n, keys_of(key)[1])


class _Curve(eqx.Module):
    """Combine the last models of several traces."""

    sizes: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, traces: tuple[Trace, ...]) -> Trace:
        last = [trace.at(len(trace.steps) - 1) for trace in traces]
        stacked = all(model.stacked for model in last)
        models = (
            jax.tree.map(lambda *leaves: jnp.stack(leaves), *last)
            if stacked
            else Several(tuple(last))
        )
        notes = {
            name: jnp.stack([trace.notes[name][-1] for trace in traces]) for name in traces[0].notes
        }
        return Trace(
            models,
            jnp.stack([jnp.asarray(trace.losses[-1]) for trace in traces]),
            traces[-1].seen,
            self.sizes,
            notes,
        )


class Several(Model):
    """A sequence of models that cannot be stacked."""

    stacked: ClassVar[bool] = False
    models: tuple[Model, ...]

    def at(self, index: int) -> Any:
        return self.models[index]

    def scores(
        self, x: Float[Array, "n *d"], basis: Float[Array, "r d"] | None = None
    ) -> Float[Array, "s n ..."]:
        return jnp.stack(
            [(model if basis is None else model.enter(basis))(x) for model in self.models]
        )

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        return self.models[-1](x)
