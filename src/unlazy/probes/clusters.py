"""Clusters of neurons on data without known hidden directions.

Two neurons are neighbors if the cosine of their weights is at least `near`. A cluster is a
connected component of this graph with at least `fraction` of all neurons; all other neurons are
unclustered. The clusters are those of the last recorded model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.linear_algebra import orthogonal_triangular
from unlazy.learners.base import Trace
from unlazy.networks.adapters import OnVectors
from unlazy.networks.base import HasNeurons, Model
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data

#: Maximum number of clusters, which `MIN_FRACTION` of all neurons in each implies.
MAX_CLUSTERS = 10
#: Smallest fraction of neurons that may be required of a cluster.
MIN_FRACTION = 1 / MAX_CLUSTERS
#: Number of neurons whose images are stored.
TILES = 24


def unit_rows(w: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """Return the rows scaled to norm one; zero rows stay zero."""
    top = jnp.maximum(jnp.max(jnp.abs(w), axis=-1, keepdims=True), jnp.finfo(w.dtype).tiny)
    scaled = w / top  # squares of tiny weights underflow
    return scaled / jnp.maximum(
        jnp.linalg.norm(scaled, axis=-1, keepdims=True), jnp.finfo(w.dtype).tiny
    )


def connected(units: Float[Array, "m d"], near: Float[Array, ""] | float) -> Bool[Array, "m m"]:
    """Return which neurons are connected through neighbors, by paths of length 1, 2, 4, … ."""
    linked = (units @ units.T >= near) | jnp.eye(len(units), dtype=bool)
    for _ in range(math.ceil(math.log2(max(len(units), 2)))):
        linked = linked.astype(jnp.float32) @ linked.astype(jnp.float32) > 0
    return linked


def cluster_members(
    units: Float[Array, "m d"], near: Float[Array, ""] | float, min_size: float
) -> Float[Array, "c m"]:
    """Return the indicators of all clusters with at least `min_size` neurons, the largest first.

    Each row is one cluster: 1 for a member, 0 otherwise. A row without a cluster is zero. There are
    at most `MAX_CLUSTERS` rows.
    """
    linked = connected(units, near)
    size = jnp.sum(linked, axis=1)
    # The first neuron of a cluster represents it.
    first = jnp.argmax(linked, axis=1) == jnp.arange(len(units))
    rank = jnp.where(first & (size.astype(float) >= min_size), size, 0)
    heads = jnp.argsort(-rank)[:MAX_CLUSTERS]
    return jnp.where((rank[heads] > 0)[:, None], linked[heads], False).astype(units.dtype)


def first_layer_of(model: Model) -> Float[Array, "m d"]:
    """Return the first-layer weights of a network, also if it is wrapped for flat images."""
    inner = model.network if isinstance(model, OnVectors) else model
    if not isinstance(inner, HasNeurons):
        raise BadInput(f"This probe needs a network with neurons, got {type(inner).__name__}.")
    return inner.first_layer


class WeightClusters(Probe):
    """Clustering of neurons, by the clusters of the last model.

    `clusters`: number of clusters in each model. `gathered`: fraction of neurons in them. For the
    final clusters: `within`, mean cosine of the members to the center, the mean direction of the
    members at the end; `between`, cosine of the two largest centers (1 if there are fewer than two
    clusters); `towards`, mean cosine of the members at a step to their final center, equal to
    `within` at the last step. `neurons` and `centres` are coordinates for plots. `tiles` are images
    of neurons, members first, if `image` gives the shape of an input.
    """

    near: float = eqx.field(converter=float, default=0.5)
    fraction: float = eqx.field(converter=float, default=0.1, metadata={"key": "share"})
    image: tuple[int, int, int] | None = eqx.field(
        static=True, default=None, metadata={"key": "picture"}
    )

    def __check_init__(self) -> None:
        require(
            MIN_FRACTION <= self.fraction <= 1,
            f"fraction must be in [{MIN_FRACTION:g}, 1], so that all clusters are counted, got "
            f"{self.fraction}.",
        )

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        units = unit_rows(trace.each(first_layer_of))  # s m d
        min_size = self.fraction * units.shape[1]
        members = jax.vmap(lambda rows: cluster_members(rows, self.near, min_size))(units)  # s c m
        final = members[-1]
        centers = unit_rows(final @ units[-1])  # c d
        inside = jnp.einsum("smd,cd->scm", units, centers) * final[None]
        total = jnp.sum(final)
        towards = jnp.where(total > 0, jnp.sum(inside, axis=(1, 2)) / jnp.maximum(total, 1), 0.0)
        within = jnp.broadcast_to(towards[-1], towards.shape)
        two = jnp.sum(final[1]) > 0
        between = jnp.broadcast_to(jnp.where(two, centers[0] @ centers[1], 1.0), towards.shape)
        measured = {
            "clusters": jnp.sum(jnp.any(members > 0, axis=2), axis=1).astype(towards.dtype),
            "gathered": jnp.mean(jnp.sum(members, axis=1), axis=1),
            "within": within,
            "between": between,
            "towards": towards,
        }
        return measured | self._shown(units, centers, final)

    def _shown(
        self, units: Float[Array, "s m d"], centers: Float[Array, "c d"], final: Float[Array, "c m"]
    ) -> dict[str, Array]:
        def placed(rows: Float[Array, "m d"]) -> tuple[Array, Array]:
            """Return coordinates in the common span, which keep angles."""
            inside = orthogonal_triangular(jnp.concatenate([rows, centers]).T)[1].T
            return inside[: len(rows)], inside[len(rows) :]

        neurons, stars = jax.lax.map(placed, units)
        shown = {"neurons": neurons, "centres": stars}
        if self.image is None:
            return shown
        order = _by_cluster(final)[:TILES]
        tiles = units[:, order]
        size = jnp.max(jnp.abs(tiles), axis=2, keepdims=True)
        bytes_ = jnp.round(
            127.5 + 127.5 * tiles / jnp.maximum(size, jnp.finfo(size.dtype).tiny)
        ).astype(jnp.uint8)
        return shown | {"tiles": bytes_.reshape(*bytes_.shape[:2], *self.image)}


def _by_cluster(final: Float[Array, "c m"]) -> Int[Array, " m"]:
    """Return neurons taken in turn from each cluster, the largest first, then the unclustered."""
    cluster = jnp.where(jnp.any(final > 0, axis=0), jnp.argmax(final, axis=0), len(final))
    turn = jnp.sum(jnp.cumsum(final, axis=1) * final, axis=0)
    order = turn * len(final) + cluster.astype(turn.dtype)
    return jnp.argsort(jnp.where(cluster < len(final), order, final.size + final.shape[1]))
