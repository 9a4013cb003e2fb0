"""Clusters of neurons where no direction is known, and of filters; gradients told by recorded
weights.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, looked
from toys import Halfspace
from unlazy.core.errors import BadInput
from unlazy.learners.base import Trace
from unlazy.networks.image_resnet import ImageResNetInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.filters import (
    EARLY,
    EarlyGradients,
    FilterClusters,
    two_clusters,
)
from unlazy.probes.clusters import WeightClusters, cluster_members, unit_rows
from unlazy.tasks.base import Batch


def around(directions, counts, noise, seed=0):
    """So many vectors around each direction, of many lengths."""
    draw = np.random.default_rng(seed)
    rows = [
        direction + noise * draw.normal(size=(count, len(direction)))
        for direction, count in zip(directions, counts, strict=True)
    ]
    whole = np.concatenate(rows)
    return jnp.asarray(whole * draw.uniform(0.1, 10, (len(whole), 1)), jnp.float32)


def test_clusters_are_connected_and_large_enough():
    d = 40
    loose = np.eye(d)[5:9]
    w = around([np.eye(d)[0], -np.eye(d)[0], np.eye(d)[1], *loose], [8, 6, 2, 1, 1, 1, 1], 0.05)
    members = cluster_members(unit_rows(w), 0.5, 3)
    assert members.sum(axis=1).tolist() == [8, 6, *[0] * 8], "two are large enough, largest first"
    assert members[0].tolist() == [1] * 8 + [0] * 12
    # A chain of neighbors is one cluster, though its ends are far apart.
    angles = np.linspace(0, np.pi, 12)
    chain = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=1), jnp.float32)
    assert cluster_members(chain, 0.9, 3).sum(axis=1).tolist() == [12, *[0] * 9]


def test_more_than_four_clusters_are_counted():
    """Five clusters of a fifth of the neurons each, and then of a tenth each ten."""
    d, key = 24, jax.random.key(0)
    task = drawn(Halfspace(d), key)
    for count in (5, 10):
        w = around(np.eye(d)[:count], [20 // count] * count, 0.02)
        models = jax.tree.map(lambda leaf: leaf[None], network(w))
        trace = Trace(models, jnp.zeros(1), Batch(jnp.zeros((1, d)), jnp.ones(1)), (0,))
        found = looked(WeightClusters(), task, trace, found={}, key=key)
        assert found["clusters"].tolist() == [count] and found["gathered"].tolist() == [1]
    with pytest.raises(BadInput, match=r"fraction must be in \[0.1, 1\]"):
        WeightClusters(fraction=0.05)


def network(w):
    return TwoLayer(w, jnp.zeros(len(w)), jnp.ones(len(w)), jnp.zeros(()), "relu")


@pytest.mark.slow
def test_members_move_from_initialization_to_their_center():
    d, draw = 48, np.random.default_rng(1)
    end = around([np.eye(d)[0], -np.eye(d)[0]], [10, 7], 0.05)
    end = jnp.concatenate([end, jnp.asarray(draw.normal(size=(3, d)), jnp.float32)])
    start = jnp.asarray(draw.normal(size=(20, d)), jnp.float32)
    models = jax.tree.map(
        lambda *leaves: jnp.stack(leaves),
        *(network(w) for w in (start, (start + 8 * end) * 1e-25, end)),
    )
    trace = Trace(models, jnp.zeros(3), Batch(jnp.zeros((1, d)), jnp.ones(1)), (0, 5, 9))
    key = jax.random.key(0)
    task = drawn(Halfspace(d), key)
    found = looked(WeightClusters(image=(4, 4, 3)), task, trace, found={}, key=key)
    assert found["clusters"].tolist()[::2] == [0, 2] and found["gathered"].tolist()[
        ::2
    ] == pytest.approx([0, 17 / 20])
    assert (
        found["between"][0] == pytest.approx(-1, abs=0.05)
        and found["within"][0] == found["towards"][-1] > 0.9
    )
    assert abs(found["towards"][0]) < 0.2 < found["towards"][1] < found["towards"][2]
    assert found["tiles"].shape == (3, 20, 4, 4, 3) and found["tiles"].dtype == jnp.uint8
    # Clusters take turns, so that the first tile is of the larger one and the second of the other:
    # opposite images.
    np.testing.assert_allclose(found["tiles"][-1, 0, 0, 0, 0], 255, atol=1)
    np.testing.assert_allclose(found["tiles"][-1, 1, 0, 0, 0], 0, atol=1)
    assert found["neurons"].shape[:2] == (3, 20) and found["centres"].shape[1] == 10
    cosines = unit_rows(found["neurons"][-1]) @ unit_rows(found["centres"][-1])[0]
    assert jnp.sum(cosines > 0.9) == 10, "angles are kept in the coordinates that are stored"


def test_two_clusters_of_filters_are_found_from_the_main_direction():
    d = 60
    units = unit_rows(
        around([np.eye(d)[2], -np.eye(d)[2], *np.eye(d)[3:33]], [10, 10, *[1] * 30], 0.05)
    )
    centers, members = two_clusters(units)
    assert members.shape == (2, 10) and {frozenset(row.tolist()) for row in members} == {
        frozenset(range(10)),
        frozenset(range(10, 20)),
    }
    assert centers[0] @ centers[1] < -0.95


@pytest.mark.slow
def test_gradients_of_the_first_steps_follow_from_recorded_weights():
    """A path of weights by momentum along known gradients: their means over trunks of ten steps are
    found again.
    """
    draw, momentum, rate = np.random.default_rng(0), 0.9, 0.05
    first = eqx.filter_jit(ImageResNetInit(1))((4, 4, 3), key=jax.random.key(0))
    kernel = np.asarray(first.filters[-1].second)
    gradients = np.asarray(
        draw.normal(size=(32, *kernel.shape)) + draw.normal(size=kernel.shape), np.float32
    )
    path, speed = [kernel], 0
    for gradient in gradients:
        speed = momentum * speed + gradient
        path.append(path[-1] - rate * speed)
    steps = (*EARLY, 32)
    last = [first.filters[-1]._replace(second=jnp.asarray(path[step])) for step in steps]
    models = jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack(leaves)),
        *(first.put({"filters": (*first.filters[:-1], block)}) for block in last),
    )
    trace = Trace(models, jnp.zeros(len(steps)), Batch(jnp.zeros((1, 48)), jnp.ones(1)), steps)
    key = jax.random.key(0)
    found = looked(EarlyGradients(momentum), None, trace, found={}, key=key)
    turned = looked(FilterClusters(), None, trace, found={}, key=key)["turned"]
    assert turned[0] == pytest.approx(0, abs=1e-5)
    units = unit_rows(jnp.asarray(path[32]).reshape(-1, 8).T)
    chosen = int(jnp.argmax(units @ two_clusters(units)[0][0]))
    rows = gradients.reshape(32, -1, 8)[:, :, chosen]
    v = np.stack([rows[a : a + 10].mean(axis=0) for a in (0, 10, 20)])
    unit = v / np.linalg.norm(v, axis=1, keepdims=True)
    mean = v.mean(axis=0) / np.linalg.norm(v.mean(axis=0))
    for trunk in range(3):
        assert found[f"mean_{trunk + 1}_cosine"][0] == pytest.approx(unit[trunk] @ mean, abs=1e-4)
    assert found["pair_13_cosine"][0] == pytest.approx(unit[0] @ unit[2], abs=1e-4)
    assert (
        found["pair_12_cosine"][0]
        == pytest.approx(unit[0] @ unit[1], abs=1e-4)
        != pytest.approx(unit[0] @ unit[2], abs=1e-3)
    )
