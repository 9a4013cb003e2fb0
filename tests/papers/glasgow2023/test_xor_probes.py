import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, looked
from unlazy.core.errors import BadInput
from unlazy.learners.base import Trace
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.glasgow2023.probes import (
    MAX_LOG10_ZETA,
    ErrorRate,
    Portrait,
    SignalHeavy,
    clusters,
    parts,
)
from unlazy.tasks.base import Batch
from unlazy.tasks.multi_index import MultiIndex, product

D = 16
TASK = drawn(MultiIndex(d=D, where=(0, 1)), jax.random.key(0))
SEEN = Batch(jnp.zeros((1, D)), jnp.zeros(1))


def network(rest=0.0, opposite=0.0, scale=1.0, clusters_kept=4):
    """One neuron for each cluster, with signal part √2·scale, and the given lengths of opposite and
    rest.
    """
    first, second = np.array([1.0, -1.0]), np.array([1.0, 1.0])
    w = np.zeros((4, D))
    for j, (own, other) in enumerate(
        [(first, second), (-first, second), (second, first), (-second, first)]
    ):
        w[j, :2] = scale * own + opposite * other / np.sqrt(2)
        w[j, 2 + j] = rest
    a = np.array([1.0, 1.0, -1.0, -1.0]) * np.sqrt(2) * scale
    a[clusters_kept:] = 1e-6
    return TwoLayer(
        jnp.array(w, jnp.float32),
        jnp.zeros(4),
        jnp.array(a / 4, jnp.float32),
        jnp.zeros(()),
        "relu",
    )


def traced(*nets, steps=None):
    """Return networks as a training trace."""
    models = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    return Trace(
        models, jnp.zeros(len(nets)), SEEN, tuple(range(len(nets))) if steps is None else steps
    )


def look(probe, net, task=TASK):
    return {
        name: float(value[0])
        for name, value in looked(probe, task, traced(net), found={}, key=jax.random.key(1)).items()
    }


def test_components_are_those_of_the_constructed_network():
    split = parts(TASK, network(rest=0.3, opposite=0.2))
    np.testing.assert_allclose(split.signal, np.sqrt(2), rtol=1e-5)
    np.testing.assert_allclose(split.opposite, 0.2, rtol=1e-4)
    np.testing.assert_allclose(split.rest, 0.3, rtol=1e-5)
    np.testing.assert_array_equal(split.side, [1, -1, 1, -1])


def test_margins_of_a_perfect_network():
    """y·f(μ) = (1/4)·a·⟨w, μ⟩ = (1/4)·√2·2, the same for all clusters, and no error."""
    found = look(Portrait(), network())
    for i in range(4):
        assert found[f"margin_{i + 1}"] == pytest.approx(np.sqrt(2) / 2, rel=1e-5)
    assert found["imbalance"] == pytest.approx(0, abs=1e-5) and found["excess"] == pytest.approx(
        0, abs=1e-5
    )
    assert found["heavy"] == 0.25 and found["not_signal"] == pytest.approx(0, abs=1e-9)
    centers, labels = clusters(TASK)
    np.testing.assert_array_equal(TASK.target(centers + 0.0 * centers), labels)
    assert look(ErrorRate(500), network())["error"] == 0


def test_a_missing_cluster_is_detected():
    found = look(Portrait(), network(clusters_kept=3))
    assert found["margin_least"] < 0.01 < found["margin_greatest"]
    assert look(ErrorRate(2000), network(clusters_kept=3))["error"] > 0.2


def test_zeta_grows_with_the_perpendicular_norm_and_is_clipped_without_a_cluster():
    small, large = (look(SignalHeavy(), network(rest=r, opposite=r)) for r in (0.01, 0.1))
    assert small["log10_zeta_plain"] == pytest.approx(np.log10(0.02 / np.sqrt(2)), abs=0.01)
    assert large["log10_zeta_plain"] == pytest.approx(np.log10(0.2 / np.sqrt(2)), abs=0.01)
    assert large["log10_zeta"] > large["log10_zeta_plain"] + 2 and large["H"] == pytest.approx(
        1.01, abs=0.02
    )
    dead = network(rest=0.1)
    dead = TwoLayer(dead.w.at[3, :2].set(0.0), dead.b, dead.a, dead.c, "relu")
    assert look(SignalHeavy(), dead)["log10_zeta_plain"] == MAX_LOG10_ZETA


def test_other_tasks_are_rejected():
    other = drawn(MultiIndex(d=D, polynomial=product(3)), jax.random.key(0))
    with pytest.raises(BadInput, match="XOR only"):
        parts(other, network())
