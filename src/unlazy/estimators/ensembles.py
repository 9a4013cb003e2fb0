"""Many networks trained as one program: settings times held-out parts to choose by, then seeds to
average over.

All members see the same rows; which of them a member learns from is its weights, and a row that is
held out has the weight 0. The number of steps is an input of the program. So the networks that
choose and those that are kept are one compiled program. Sizes are rounded up so that tables of
about the same size share it: columns of zeros, which change nothing, and repeated rows whose
weights are shared with the originals.
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

#: The least numbers of rows and columns to which a table is filled up.
ROWS, COLUMNS = 128, 16
#: Held-out parts: of five, in each of which every class has its share.
PARTS = 5
#: Below this number of distinct rows nothing is held out.
FEWEST = 20
#: Factors of the scores that may be the best on held-out rows.
SHARPNESS = np.geomspace(0.05, 4.0, 40)


def rounded_up(size: int, least: int) -> int:
    """The next of `least`·2^k, in eighths of a power of two beyond 1024: at most an eighth too much
    where it costs time.
    """
    power = max(least, 1 << (size - 1).bit_length())
    step = power // 16 if power > 1024 else power
    return -(-size // step) * step


class DistinctRows(NamedTuple):
    """Distinct rows with their weights: a row of weight 2 and the same row twice are the same
    table.
    """

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
        """In an order that depends on the rows alone."""
        both = np.column_stack([x, y])
        distinct, same = np.unique(both, axis=0, return_inverse=True)
        return cls(
            distinct[:, : x.shape[1]], distinct[:, x.shape[1] :], np.bincount(same.ravel(), weight)
        )

    def parts(self, seed: int) -> Int[np.ndarray, "p h"]:
        """For each of `PARTS`, the rows that it holds out: an equal number, spread over the
        targets, the same rows never in two.
        """
        draw = np.random.default_rng(seed)
        first = np.argmax(self.y, axis=1) if self.y.shape[1] > 1 else self.y[:, 0]
        order = np.lexsort([draw.random(len(first)), first])
        size = len(order) // PARTS
        return np.stack([order[part::PARTS][:size] for part in range(PARTS)])


class Recipe(NamedTuple):
    """How a member is drawn and trained.

    Recipes that are trained together differ in numbers only.
    """

    init: Init
    stage: Descent


@eqx.filter_jit
def _train(recipes: Recipe, x: Any, y: Any, weight: Any, lengths: Any, keys: Any) -> Network:
    """Each member by its own recipe, with its own weights of the rows and its own key; the networks
    after each of `lengths` steps.
    """

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
def _begun(stage: Descent, networks: Network) -> Any:
    return eqx.filter_vmap(stage.begin)(networks)


@eqx.filter_jit
def _went_on(stage: Descent, states: Any, batch: WeightedBatch, steps: Any, keys: Any) -> Any:
    spans = jnp.stack([jnp.zeros_like(steps), steps])[None]

    def one(state: Any, key: Any) -> Any:
        return stage.go_on(state, SampleGradients(), batch, spans, steps, key)[0]

    return eqx.filter_vmap(one)(states, keys)


@eqx.filter_jit
def _held_out_scores(networks: Network, x: Any) -> Any:
    """Scores of each member's networks on its own rows: members steps rows outputs."""
    arrays, rest = eqx.partition(networks, eqx.is_array)

    def scores(one: Network, rows: Any) -> Any:
        return eqx.combine(one, rest)(rows)

    return jax.vmap(jax.vmap(scores, in_axes=(0, None)))(arrays, x)


@eqx.filter_jit
def mean_scores(networks: Network, x: Any) -> Any:
    """The mean of the members' scores."""
    arrays, rest = eqx.partition(networks, eqx.is_array)
    return jnp.mean(jax.vmap(lambda one: eqx.combine(one, rest)(x))(arrays), axis=0)


class HeldOutChoice(NamedTuple):
    """What held-out rows say: places of the setting and of the stop, the factor of the scores, and
    the loss of every setting and stop.
    """

    setting: int
    stop: int
    sharpness: float
    losses: Float[np.ndarray, "g s"]


class Members:
    """Trains members on a table. `at_once`: how many in one program."""

    def __init__(self, rows: DistinctRows, loss: Loss, at_once: int) -> None:
        self.rows, self.loss, self.at_once = rows, loss, at_once
        n = len(rows.x)
        self.repeated = np.arange(rounded_up(n, ROWS)) % n
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
        """The networks of all members at each of `stops`, the last of which ends training, in
        single precision.
        """
        lengths = jnp.asarray(np.diff(stops, prepend=0), jnp.int32)
        size = min(self.at_once, len(recipes))  # of all groups: one program
        groups = [
            np.minimum(np.arange(start, start + size), len(recipes) - 1)
            for start in range(0, len(recipes), size)
        ]

        def trained(group: Int[np.ndarray, " g"], lengths: Any) -> Network:
            stacked = jax.tree.map(
                lambda *leaves: jnp.asarray(leaves, jnp.float32),
                *[recipes[index] for index in group],
            )
            shares = (weights[group] / self.copies)[:, self.repeated]
            shares = shares * (shares.shape[1] / shares.sum(axis=1, keepdims=True))
            networks = _train(
                stacked, self._x, self._y, jnp.asarray(shares, jnp.float32), lengths, keys[group]
            )
            result: Network = jax.tree.map(np.asarray, networks)
            return result

        if len(groups) > 1:
            trained(
                groups[0], jnp.zeros_like(lengths)
            )  # no step: the program is compiled once, not by each thread
        found = in_threads(lambda group: trained(group, lengths), groups)
        together = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
        result: Network = jax.tree.map(lambda leaf: leaf[: len(recipes)], together)
        return result

    def drawn(self, init: Init, keys: Any) -> Network:
        """Initial networks, one a key."""
        return _drawn(init, self.x.shape[1], self.rows.y.shape[1], keys)

    def begun(self, stage: Descent, networks: Network) -> Any:
        """What a stage starts from, of each network."""
        return _begun(stage, jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), networks))

    def went_on(self, stage: Descent, states: Any, steps: int, keys: Any) -> Any:
        """Networks with the optimiser's memory, so many steps of a stage later, on all rows."""
        share = (self.rows.weight / self.copies)[self.repeated]
        share = share * (len(share) / share.sum())
        batch = WeightedBatch(self._x, self._y, jnp.asarray(share, jnp.float32))
        return _went_on(stage, states, batch, jnp.asarray(steps, jnp.int32), keys)

    def choose(
        self, settings: Sequence[Recipe], stops: Sequence[int], splits: int, seed: int, key: Any
    ) -> HeldOutChoice:
        """The setting and stop of the least loss on rows that are held out, summed over `splits`
        held-out parts.
        """
        held = self.rows.parts(seed)[:splits]  # s h
        recipes = [setting for setting in settings for _ in range(splits)]
        out = np.tile(held, (len(settings), 1))
        weights = np.broadcast_to(self.rows.weight, (len(out), len(self.rows.weight))).copy()
        np.put_along_axis(weights, out, 0.0, axis=1)
        # Settings meet the same initial networks and orders.
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
    """With columns of zeros up to a round number."""
    return np.pad(x, ((0, 0), (0, rounded_up(x.shape[1], COLUMNS) - x.shape[1])))


def sharpened_losses(loss: Loss, scores: Any, y: Any, weight: Any) -> Float[np.ndarray, " t"]:
    """Mean loss with the scores times each of `SHARPNESS`, so that confidence, which is mended
    later, is not held against a network.

    Targets of a regression have no such factor: there the losses are all the same.
    """
    share = weight / weight.sum()
    if loss == "squared":
        return np.full(len(SHARPNESS), float(np.sum(share[..., None] * np.square(scores - y))))
    if loss == "logistic":
        return np.array(
            [
                float(np.sum(share * np.logaddexp(0, -factor * (y * scores)[..., 0])))
                for factor in SHARPNESS
            ]
        )
    found = []
    for factor in SHARPNESS:
        logs = factor * scores - scipy.special.logsumexp(factor * scores, axis=-1, keepdims=True)
        found.append(-float(np.sum(share * np.sum(y * logs, axis=-1))))
    return np.array(found)
