"""Clusters of neurons where no direction is known beforehand: on data without a secret.

Two neurons are neighbours where the cosine of their weights is at least `near`. A cluster is a set
of neurons that are connected through neighbours, and holds at least `share` of all neurons; neurons
without one are loose. The clusters are those of the last recorded model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.core.linear_algebra import orthogonal_triangular
from unlazy.learners.base import Trace
from unlazy.networks.adapters import OnVectors
from unlazy.networks.base import HasNeurons, Model
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data

#: So many clusters are looked at, the largest first.
MOST = 4
#: Neurons of which pictures are kept.
TILES = 24


def unit_rows(w: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """Rows of length one; a row of zeros stays zero."""
    top = jnp.maximum(jnp.max(jnp.abs(w), axis=-1, keepdims=True), jnp.finfo(w.dtype).tiny)
    scaled = w / top  # squares of tiny weights underflow
    return scaled / jnp.maximum(
        jnp.linalg.norm(scaled, axis=-1, keepdims=True), jnp.finfo(w.dtype).tiny
    )


def connected(units: Float[Array, "m d"], near: Float[Array, ""] | float) -> Bool[Array, "m m"]:
    """Which neurons are connected through neighbours: reached in one step, two, four, … ."""
    linked = (units @ units.T >= near) | jnp.eye(len(units), dtype=bool)
    for _ in range(math.ceil(math.log2(max(len(units), 2)))):
        linked = linked.astype(jnp.float32) @ linked.astype(jnp.float32) > 0
    return linked


def cluster_members(
    units: Float[Array, "m d"], near: Float[Array, ""] | float, least: float
) -> Float[Array, "c m"]:
    """Members of the largest clusters of at least `least` neurons, one row a cluster: 1 for a
    member. A row without a cluster is zero.
    """
    linked = connected(units, near)
    size = jnp.sum(linked, axis=1)
    first = jnp.argmax(linked, axis=1) == jnp.arange(
        len(units)
    )  # one neuron speaks for its cluster
    rank = jnp.where(first & (size.astype(float) >= least), size, 0)
    heads = jnp.argsort(-rank)[:MOST]
    return jnp.where((rank[heads] > 0)[:, None], linked[heads], False).astype(units.dtype)


def first_layer_of(model: Model) -> Float[Array, "m d"]:
    """The neurons of a network, also where it sees images laid out as vectors."""
    inner = model.network if isinstance(model, OnVectors) else model
    if not isinstance(inner, HasNeurons):
        raise BadInput(
            f"Only networks with neurons can be looked at so, not {type(inner).__name__}."
        )
    return inner.first_layer


class WeightClusters(Probe):
    """How neurons gather, by the clusters of the last model.

    `clusters`: how many there are in each model by itself, `gathered`: the share of neurons in
    them. Of the final clusters: `within`, the mean cosine of their members to the centre, the mean
    direction of the members at the end; `between`, the cosine of the two largest centres (1 where
    there is one cluster or none); `towards`: the mean cosine of members at a step to their centre
    at the end, so that at the last step it is `within`. `neurons` and `centres` are drawn in the
    plane; `tiles` are pictures of neurons, of members first, where `picture` says what shape an
    input has.
    """

    near: float = eqx.field(converter=float, default=0.5)
    share: float = eqx.field(converter=float, default=0.1)
    picture: tuple[int, int, int] | None = eqx.field(static=True, default=None)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        units = unit_rows(trace.each(first_layer_of))  # s m d
        least = self.share * units.shape[1]
        members = jax.vmap(lambda rows: cluster_members(rows, self.near, least))(units)  # s c m
        final = members[-1]
        centres = unit_rows(final @ units[-1])  # c d
        inside = jnp.einsum("smd,cd->scm", units, centres) * final[None]
        total = jnp.sum(final)
        towards = jnp.where(total > 0, jnp.sum(inside, axis=(1, 2)) / jnp.maximum(total, 1), 0.0)
        within = jnp.broadcast_to(towards[-1], towards.shape)
        two = jnp.sum(final[1]) > 0
        between = jnp.broadcast_to(jnp.where(two, centres[0] @ centres[1], 1.0), towards.shape)
        measured = {
            "clusters": jnp.sum(jnp.any(members > 0, axis=2), axis=1).astype(towards.dtype),
            "gathered": jnp.mean(jnp.sum(members, axis=1), axis=1),
            "within": within,
            "between": between,
            "towards": towards,
        }
        return measured | self._shown(units, centres, final)

    def _shown(
        self, units: Float[Array, "s m d"], centres: Float[Array, "c d"], final: Float[Array, "c m"]
    ) -> dict[str, Array]:
        def placed(rows: Float[Array, "m d"]) -> tuple[Array, Array]:
            """Coordinates in the common span: angles are kept, in far less room than d."""
            inside = orthogonal_triangular(jnp.concatenate([rows, centres]).T)[1].T
            return inside[: len(rows)], inside[len(rows) :]

        neurons, stars = jax.lax.map(placed, units)
        shown = {"neurons": neurons, "centres": stars}
        if self.picture is None:
            return shown
        order = _by_cluster(final)[:TILES]
        tiles = units[:, order]
        size = jnp.max(jnp.abs(tiles), axis=2, keepdims=True)
        bytes_ = jnp.round(
            127.5 + 127.5 * tiles / jnp.maximum(size, jnp.finfo(size.dtype).tiny)
        ).astype(jnp.uint8)
        return shown | {"tiles": bytes_.reshape(*bytes_.shape[:2], *self.picture)}


def _by_cluster(final: Float[Array, "c m"]) -> Int[Array, " m"]:
    """Neurons in turn from each cluster, the largest first, and then the loose ones."""
    place = jnp.where(jnp.any(final > 0, axis=0), jnp.argmax(final, axis=0), len(final))
    turn = jnp.sum(jnp.cumsum(final, axis=1) * final, axis=0)
    order = turn * len(final) + place.astype(turn.dtype)
    return jnp.argsort(jnp.where(place < len(final), order, final.size + final.shape[1]))
