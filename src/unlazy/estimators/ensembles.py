"""Networks trained in one program, for selecting settings on held-out rows and for ensembles.

All networks get the same rows with different weights; held-out rows have weight 0. The number of
steps is an input of the program. So selection and the final ensemble use one compiled program.
Sizes are rounded up, so that tables of similar size use it, too. Padding columns are zero, and
padding rows are copies that divide the weight of the original row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Float, Int

from unlazy.core.losses import Loss
from unlazy.core.threads import in_threads
from unlazy.learners.gradient import Descent
from unlazy.learners.sources import SampleGradients
from unlazy.networks.base import Init, Network
from unlazy.tasks.base import WeightedBatch

#: Smallest numbers of rows and columns to which a table is padded.
ROW_UNIT, COLUMN_UNIT = 128, 16
#: Number of stratified held-out parts.
PARTS = 5
#: Minimum number of distinct rows for holding some out.
MIN_ROWS = 20
#: Candidate factors of the scores (inverse temperatures), selected on held-out rows.
SHARPNESS = np.geomspace(0.05, 4.0, 40)


def rounded_up(size: int, minimum: int) -> int:
    """Return `size` rounded up to `minimum`·2^k, or beyond 1024 to an eighth of a power of two."""
    power = max(minimum, 1 << (size - 1).bit_length())
    step = power // 16 if power > 1024 else power
    return -(-size // step) * step


class DistinctRows(NamedTuple):
    """Distinct rows with their weights; a row of weight 2 equals two copies of weight 1."""

    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, "n o"]
    weight: Float[np.ndarray, " n"]

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, "n o"],
        weight: Float[np.ndarray, " n"],
    ) -> DistinctRows:
        """Merge equal rows, in an order that depends only on the rows."""
        both = np.column_stack([x, y])
        distinct, same = np.unique(both, axis=0, return_inverse=True)
        return cls(
            distinct[:, : x.shape[1]], distinct[:, x.shape[1] :], np.bincount(same.ravel(), weight)
        )

    def parts(self, seed: int) -> Int[np.ndarray, "p h"]:
        """Return the indices of the held-out rows per part: disjoint, equally many, stratified."""
        draw = np.random.default_rng(seed)
        first = np.argmax(self.y, axis=1) if self.y.shape[1] > 1 else self.y[:, 0]
        order = np.lexsort([draw.random(len(first)), first])
        size = len(order) // PARTS
        return np.stack([order[part::PARTS][:size] for part in range(PARTS)])


class Recipe(NamedTuple):
    """Initialization and training stage; recipes of one program differ only in numbers."""

    init: Init
    stage: Descent


@eqx.filter_jit
def _train(recipes: Recipe, x: Any, y: Any, weight: Any, lengths: Any, keys: Any) -> Network:
    """Train one network per recipe, row weights and key; return the networks after each length."""

    def one(recipe: Recipe, weight: Any, key: Any) -> Network:
        key_init, key_order = jax.random.split(key)
        network = recipe.init(x.shape[1], outputs=y.shape[1], key=key_init)
        return recipe.stage.run(
            network, SampleGradients(), WeightedBatch(x, y, weight), lengths, key_order
        )[0]

    result: Network = eqx.filter_vmap(one)(recipes, weight, keys)
    return result


@eqx.filter_jit
def _drawn(init: Init, d: int, outputs: int, keys: Any) -> Network:
    result: Network = eqx.filter_vmap(lambda key: init(d, outputs=outputs, key=key))(keys)
    return result


@eqx.filter_jit
def _initial_states(stage: Descent, networks: Network) -> Any:
    return eqx.filter_vmap(stage.begin)(networks)


@eqx.filter_jit
def _continued(stage: Descent, states: Any, batch: WeightedBatch, steps: Any, keys: Any) -> Any:
    spans = jnp.stack([jnp.zeros_like(steps), steps])[None]

    def one(state: Any, key: Any) -> Any:
        return stage.go_on(state, SampleGradients(), batch, spans, steps, key)[0]

    return eqx.filter_vmap(one)(states, keys)


@eqx.filter_jit
def _held_out_scores(networks: Network, x: Any) -> Any:
    """Return scores of each network on its own rows: networks × steps × rows × outputs."""
    arrays, rest = eqx.partition(networks, eqx.is_array)

    def scores(one: Network, rows: Any) -> Any:
        return eqx.combine(one, rest)(rows)

    return jax.vmap(jax.vmap(scores, in_axes=(0, None)))(arrays, x)


@eqx.filter_jit
def mean_scores(networks: Network, x: Any) -> Any:
    """Return the mean score of the networks."""
    arrays, rest = eqx.partition(networks, eqx.is_array)
    return jnp.mean(jax.vmap(lambda one: eqx.combine(one, rest)(x))(arrays), axis=0)


class HeldOutChoice(NamedTuple):
    """Selected indices of setting and stop, factor of the scores, and all held-out losses."""

    setting: int
    stop: int
    sharpness: float
    losses: Float[np.ndarray, "g s"]


class Members:
    """Trainer of networks on a table, `at_once` of them per program."""

    def __init__(self, rows: DistinctRows, loss: Loss, at_once: int) -> None:
        self.rows, self.loss, self.at_once = rows, loss, at_once
        n = len(rows.x)
        self.repeated = np.arange(rounded_up(n, ROW_UNIT)) % n
        self.copies = np.bincount(self.repeated, minlength=n)
        self.x = padded(rows.x)
        self._x, self._y = (
            jnp.asarray(part[self.repeated], jnp.float32) for part in (self.x, rows.y)
        )

    def train(
        self,
        recipes: Sequence[Recipe],
        stops: Sequence[int],
        weights: Float[np.ndarray, "m n"],
        keys: Any,
    ) -> Network:
        """Return the networks after each number of steps in `stops`, in single precision."""
        lengths = jnp.asarray(np.diff(stops, prepend=0), jnp.int32)
        size = min(self.at_once, len(recipes))  # the same for all groups, for one program
        groups = [
            np.minimum(np.arange(start, start + size), len(recipes) - 1)
            for start in range(0, len(recipes), size)
        ]

        def trained(group: Int[np.ndarray, " g"], lengths: Any) -> Network:
            stacked = jax.tree.map(
                lambda *leaves: jnp.asarray(leaves, jnp.float32),
                *[recipes[index] for index in group],
            )
            spread = (weights[group] / self.copies)[:, self.repeated]
            spread = spread * (spread.shape[1] / spread.sum(axis=1, keepdims=True))
            networks = _train(
                stacked, self._x, self._y, jnp.asarray(spread, jnp.float32), lengths, keys[group]
            )
            result: Network = jax.tree.map(np.asarray, networks)
            return result

        if len(groups) > 1:
            # Without a step: compile once, not in each thread.
            trained(groups[0], jnp.zeros_like(lengths))
        parts = in_threads(lambda group: trained(group, lengths), groups)
        together = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
        result: Network = jax.tree.map(lambda leaf: leaf[: len(recipes)], together)
        return result

    def drawn(self, init: Init, keys: Any) -> Network:
        """Draw one initial network per key."""
        return _drawn(init, self.x.shape[1], self.rows.y.shape[1], keys)

    def initial_states(self, stage: Descent, networks: Network) -> Any:
        """Return the networks with the initial state of a stage's optimizer."""
        single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), networks)
        return _initial_states(stage, single)

    def continued(self, stage: Descent, states: Any, steps: int, keys: Any) -> Any:
        """Return the states after some more steps of a stage on all rows."""
        weight = (self.rows.weight / self.copies)[self.repeated]
        weight = weight * (len(weight) / weight.sum())
        batch = WeightedBatch(self._x, self._y, jnp.asarray(weight, jnp.float32))
        return _continued(stage, states, batch, jnp.asarray(steps, jnp.int32), keys)

    def choose(
        self, settings: Sequence[Recipe], stops: Sequence[int], splits: int, seed: int, key: Any
    ) -> HeldOutChoice:
        """Return the setting and stop of the smallest loss on the first `splits` held-out parts."""
        held = self.rows.parts(seed)[:splits]  # s h
        recipes = [setting for setting in settings for _ in range(splits)]
        out = np.tile(held, (len(settings), 1))
        weights = np.broadcast_to(self.rows.weight, (len(out), len(self.rows.weight))).copy()
        np.put_along_axis(weights, out, 0.0, axis=1)
        # All settings use the same initial networks and orders of rows.
        keys = jax.random.split(key, splits)[np.tile(np.arange(splits), len(settings))]
        networks = self.train(recipes, stops, weights, keys)
        scores = np.asarray(
            _held_out_scores(networks, jnp.asarray(self.x[out], jnp.float32)), np.float64
        )  # (g s) k h o
        scores = scores.reshape(len(settings), splits, *scores.shape[1:])
        losses = np.full((len(settings), scores.shape[2], len(SHARPNESS)), np.inf)
        y, weight = self.rows.y[held], self.rows.weight[held]
        for setting, of_setting in enumerate(scores):
            for step in range(scores.shape[2]):
                if np.all(np.isfinite(of_setting[:, step])):
                    losses[setting, step] = sharpened_losses(
                        self.loss, of_setting[:, step], y, weight
                    )
        best = np.unravel_index(int(np.argmin(losses)), losses.shape)
        return HeldOutChoice(
            int(best[0]), int(best[1]), float(SHARPNESS[best[2]]), losses.min(axis=2)
        )


def padded(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n e"]:
    """Return x with columns of zeros appended, up to a rounded number."""
    return np.pad(x, ((0, 0), (0, rounded_up(x.shape[1], COLUMN_UNIT) - x.shape[1])))


def sharpened_losses(loss: Loss, scores: Any, y: Any, weight: Any) -> Float[np.ndarray, " t"]:
    """Return the mean loss of the scores multiplied by each factor in `SHARPNESS`.

    Thus settings are compared after calibration. The squared loss ignores the factor.
    """
    weight = weight / weight.sum()
    if loss == "squared":
        return np.full(len(SHARPNESS), float(np.sum(weight[..., None] * np.square(scores - y))))
    if loss == "logistic":
        return np.array(
            [
                float(np.sum(weight * np.logaddexp(0, -factor * (y * scores)[..., 0])))
                for factor in SHARPNESS
            ]
        )
    losses = []
    for factor in SHARPNESS:
        logs = factor * scores - scipy.special.logsumexp(factor * scores, axis=-1, keepdims=True)
        losses.append(-float(np.sum(weight * np.sum(y * logs, axis=-1))))
    return np.array(losses)
