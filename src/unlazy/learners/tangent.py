"""Ridge regression for linearized networks and for the last layer, along a path of ridges.

Gradient descent with weight decay on these models is a convex problem. Its solutions for all decays
are computed directly, without learning rates or epochs.

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

#: Rows per prediction, and maximum number of products with the tangent kernel per path.
ROWS, PRODUCTS = 2048, 200
#: Relative residual to which the smallest ridge is solved.
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
    """Return J·Jᵀ·v for the derivatives J of the scores of x by all parameters."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)

    def scores(arrays: Any) -> Array:
        result: Array = eqx.combine(arrays, rest)(x)
        return result

    _, pull = jax.vjp(scores, arrays)
    (gradient,) = pull(v)
    result: Array = jax.jvp(scores, (arrays,), (gradient,))[1]
    return result


@eqx.filter_jit
def _pulled(network: Network, x: Any, v: Any) -> Any:
    """Return Jᵀ·v for each row of v."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    _, pull = jax.vjp(lambda arrays: eqx.combine(arrays, rest)(x), arrays)
    return jax.lax.map(lambda one: pull(one)[0], v)


@eqx.filter_jit
def _tangents(network: Network, deltas: Any, x: Any) -> Array:
    """Return g₀(x) + J(x)·δ for each displacement δ."""
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    value, push = jax.linearize(lambda arrays: eqx.combine(arrays, rest)(x), arrays)
    result: Array = value[None] + jax.lax.map(push, deltas)
    return result


class TangentPath(PathModel):
    """Linearizations of one network with one displacement per setting of the path."""

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
    """Last layers on the hidden layer of one network, one per setting of the path."""

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
    """Base class: a network from `init` fitted for each ridge, in units of the mean of ‖φ(x)‖²."""

    path, setting = "ridges", "ridge"
    init: Init
    ridges: tuple[float, ...] = eqx.field(static=True, default=(1.0,), converter=positive)

    def work(self, n: int, r: int) -> float:
        """Estimate the products with the features of the whole sample."""
        return 10.0 * PRODUCTS * n * r * self.init.width

    def prediction_work(self, d: int) -> float:
        return 2.0 * d * self.init.width * len(self.ridges)

    @abstractmethod
    def _solve(self, network: Network, x: np.ndarray, y: np.ndarray) -> PathModel:
        """Return the models along the path."""

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        key_init, key_data, _ = keys_of(key)
        sample: Batch = draw(sampler, n, key_data)
        network = drawn_for(
            self.init, sampler.input_shape, outputs=sampler.outputs.count, key=key_init
        )
        x = np.asarray(sample.x if sampler.basis is None else sample.x @ sampler.basis)
        y = np.asarray(sample.y)
        models = self._solve(network, x, y)
        errors = np.square(models.path_scores(x) - y).reshape(len(self.ridges), n, -1)
        return self.traced(models, 0.5 * errors.sum(axis=2).mean(axis=1), sample)


class TangentRidge(_LinearInParameters):
    """The linearized network that minimizes ‖g₀ + J·δ − y‖² + λ‖δ‖² over δ.

    One Krylov space of the tangent kernel J·Jᵀ, of at most `PRODUCTS` products, contains the
    solutions for all ridges.
    """

    def _solve(self, network: Network, x: np.ndarray, y: np.ndarray) -> TangentPath:
        residual = y - np.asarray(_scores(network, x))
        # One random vector estimates the trace well enough for a unit.
        probe = np.random.default_rng(0).choice([-1.0, 1.0], residual.shape).astype(residual.dtype)
        unit = float(np.mean(probe * np.asarray(_product(network, x, probe))))

        def product(v: np.ndarray) -> np.ndarray:
            return np.asarray(
                _product(network, x, v.reshape(residual.shape).astype(residual.dtype))
            ).ravel()

        solved = krylov_path(
            product,
            residual.ravel(),
            [ridge * unit for ridge in self.ridges],
            tolerance=TOLERANCE,
            products=PRODUCTS,
        )
        alphas = solved.coefficients.reshape(len(self.ridges), *residual.shape).astype(
            residual.dtype
        )
        return TangentPath(network, _pulled(network, x, jnp.asarray(alphas)))


class LastLayerRidge(_LinearInParameters):
    """The last layer A that minimizes ‖A·h − y‖² + λ‖A‖² on the hidden layer h of a random network.

    There is no offset.
    """

    def _solve(self, network: Network, x: np.ndarray, y: np.ndarray) -> ReadoutPath:
        phi = np.asarray(_features(network, x), np.float64)
        unit = float(np.mean(np.sum(np.square(phi), axis=1)))
        return ReadoutPath(
            network,
            feature_path(phi, np.asarray(y, np.float64), [ridge * unit for ridge in self.ridges]),
        )
