"""Networks that are linear in what is trained: the tangent model, and the last layer alone. Both
are solved, along a path of ridges.

Gradient descent with weight decay on them is a convex problem, whose solutions for all decays these
learners give at once. No step size and no number of epochs is left to be chosen.

Reference: allenzhu2019, Section 8.1: (NTK) and (last).
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.learners.base import Trace, keys_of
from unlazy.learners.path import PathLearner, PathModel, positive
from unlazy.networks.adapters import drawn_for
from unlazy.networks.base import Init, Network
from unlazy.solvers.krylov import krylov_path
from unlazy.solvers.policy import feature_path
from unlazy.tasks.base import Batch, Sampler, draw

#: Rows that are predicted at a time, and the products with the tangent kernel that a path may take.
ROWS, PRODUCTS = 2048, 200
#: At which residual, relative to the labels, the least ridge counts as solved.
TOLERANCE = 1e-3


@eqx.filter_jit
def _scores(network: Network, x: Any) -> Array:
    return network(x)


@eqx.filter_jit
def _features(network: Any, x: Any) -> Array:
    result: Array = network.hidden(x)
    return result


@eqx.filter_jit
def _product(network: Network, x: Any, v: Any) -> Array:
    """J·Jᵀ·v for the derivatives J of the scores of x by all parameters."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)

    def scores(arrays: Any) -> Array:
        result: Array = eqx.combine(arrays, rest)(x)
        return result

    _, pull = jax.vjp(scores, arrays)
    (slopes,) = pull(v)
    result: Array = jax.jvp(scores, (arrays,), (slopes,))[1]
    return result


@eqx.filter_jit
def _pulled(network: Network, x: Any, v: Any) -> Any:
    """Jᵀ·v for each row of v."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    _, pull = jax.vjp(lambda arrays: eqx.combine(arrays, rest)(x), arrays)
    return jax.lax.map(lambda one: pull(one)[0], v)


@eqx.filter_jit
def _tangents(network: Network, deltas: Any, x: Any) -> Array:
    """g₀(x) + J(x)·δ for each displacement δ."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    value, push = jax.linearize(lambda arrays: eqx.combine(arrays, rest)(x), arrays)
    result: Array = value[None] + jax.lax.map(push, deltas)
    return result


class TangentPath(PathModel):
    """Tangent models of one network, at a displacement for each place of the path."""

    network: Network
    deltas: Any

    def at(self, index: int) -> Self:
        return dataclasses.replace(
            self, deltas=jax.tree.map(lambda leaf: leaf[index : index + 1], self.deltas)
        )

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        parts = [
            np.asarray(_tangents(self.network, self.deltas, x[at : at + ROWS]))
            for at in range(0, len(x), ROWS)
        ]
        return np.concatenate(parts, axis=1)


class ReadoutPath(PathModel):
    """Last layers on the hidden layer of one network, one for each place of the path."""

    network: Network
    weights: np.ndarray  # steps m, or steps m o

    def at(self, index: int) -> Self:
        return dataclasses.replace(self, weights=self.weights[index : index + 1])

    def path_scores(self, x: Float[np.ndarray, "n d"]) -> np.ndarray:
        phi = np.concatenate(
            [
                np.asarray(_features(self.network, x[at : at + ROWS]))
                for at in range(0, len(x), ROWS)
            ]
        )
        return np.moveaxis(np.tensordot(phi, self.weights, axes=(1, 1)), 1, 0)


class _LinearInParameters(PathLearner):
    """Base: a network from `init`, fitted at `ridges`, in units of the features' mean square."""

    path, setting = "ridges", "ridge"
    init: Init
    ridges: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def work(self, n: int, r: int) -> float:
        """Products with the features of the whole sample."""
        return 10.0 * PRODUCTS * n * r * self.init.width

    def prediction_work(self, d: int) -> float:
        return 2.0 * d * self.init.width * len(self.ridges)

    @abstractmethod
    def _solve(self, network: Network, x: np.ndarray, y: np.ndarray) -> PathModel:
        """The models along the path."""

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        key_init, key_data, _ = keys_of(key)
        sample: Batch = draw(sampler, n, key_data)
        network = drawn_for(
            self.init, sampler.input_shape, outputs=sampler.outputs.count, key=key_init
        )
        x = np.asarray(sample.x if sampler.basis is None else sample.x @ sampler.basis)
        y = np.asarray(sample.y)
        models = self._solve(network, x, y)
        misses = np.square(models.path_scores(x) - y).reshape(len(self.ridges), n, -1)
        return self.traced(models, 0.5 * misses.sum(axis=2).mean(axis=1), sample)


class TangentRidge(_LinearInParameters):
    """min over δ of ‖g₀ + J·δ − y‖² + λ‖δ‖²: the tangent model of a network with all its
    parameters, of all outputs together.

    One Krylov space of the tangent kernel J·Jᵀ, of at most `PRODUCTS` products, holds the solutions
    for all ridges.
    """

    def _solve(self, network: Network, x: np.ndarray, y: np.ndarray) -> TangentPath:
        missing = y - np.asarray(_scores(network, x))
        # One random vector tells the trace well enough for a unit.
        probe = np.random.default_rng(0).choice([-1.0, 1.0], missing.shape).astype(missing.dtype)
        unit = float(np.mean(probe * np.asarray(_product(network, x, probe))))

        def product(v: np.ndarray) -> np.ndarray:
            return np.asarray(
                _product(network, x, v.reshape(missing.shape).astype(missing.dtype))
            ).ravel()

        found = krylov_path(
            product,
            missing.ravel(),
            [ridge * unit for ridge in self.ridges],
            tolerance=TOLERANCE,
            products=PRODUCTS,
        )
        alphas = found.coefficients.reshape(len(self.ridges), *missing.shape).astype(missing.dtype)
        return TangentPath(network, _pulled(network, x, jnp.asarray(alphas)))


class LastLayerRidge(_LinearInParameters):
    """min over A of ‖A·h − y‖² + λ‖A‖² on the hidden layer h of a random network: its conjugate
    kernel. There is no offset.
    """

    def _solve(self, network: Network, x: np.ndarray, y: np.ndarray) -> ReadoutPath:
        phi = np.asarray(_features(network, x), np.float64)
        unit = float(np.mean(np.sum(np.square(phi), axis=1)))
        return ReadoutPath(
            network,
            feature_path(phi, np.asarray(y, np.float64), [ridge * unit for ridge in self.ridges]),
        )
