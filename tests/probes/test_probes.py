import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, looked
from toys import Halfspace, small_init
from unlazy.core.errors import BadInput
from unlazy.core.metrics import ACCURACY, SQUARED_ERROR, Outputs, accuracy, metric_of, squared_error
from unlazy.learners.base import Trace
from unlazy.networks.base import Model
from unlazy.networks.two_layer import TwoLayer
from unlazy.probes.neurons import Alignment, Clusters, Kinks, SecondLayerSigns, Silhouette
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch
from unlazy.tasks.dictionary.patterns import ParityMixture
from unlazy.tasks.gaussians import CubeMixture


def test_accuracy_counts_ties_half_and_nan_as_wrong():
    y = jnp.array([1.0, -1.0, 1.0, 1.0])
    assert accuracy(jnp.array([2.0, 3.0, 0.0, jnp.nan]), y) == pytest.approx(100 * 1.5 / 4)


def measured(probe, task, model, seen):
    """What a probe of traces finds in one model."""
    stacked = jax.tree.map(lambda leaf: leaf[None], model)
    found = looked(
        probe, task, Trace(stacked, jnp.zeros(1), seen, (0,)), found={}, key=jax.random.key(3)
    )
    return {name: value[0] for name, value in found.items()}


class Linear(Model):
    u: jax.Array

    def __call__(self, x):
        return 10 * x @ self.u


class Wrapped(Model):
    """A model that knows no coordinates."""

    net: Model

    def __call__(self, x):
        return self.net(x)


@pytest.fixture
def scenario():
    task = drawn(Halfspace(4), jax.random.key(0))
    return task, small_init(m=3)(4, key=jax.random.key(1)), task.sample(50, key=jax.random.key(2))


def test_accuracy_of_the_target_itself_and_of_its_opposite(scenario):
    task, net, seen = scenario
    perfect = net.put(
        {"w": task.features, "b": jnp.zeros(1), "a": jnp.ones(1), "c": jnp.asarray(0.0)}
    )
    found = measured(Performance(200), task, Linear(task.u), seen)
    assert found["test_accuracy"] == found["train_accuracy"] == 100
    assert measured(Performance(200), task, Linear(-task.u), seen)["test_accuracy"] == 0
    assert Alignment().look(task, perfect, seen=seen, key=jax.random.key(3))[
        "cosine"
    ] == pytest.approx(1, abs=1e-5)


def test_accuracy_is_the_same_through_coordinates():
    """A model is looked at by coordinates, cheaply where it knows how; the answer is that of the
    input space.
    """
    task = drawn(ParityMixture(d=10, D=6, k=3), jax.random.key(0))
    net, seen = small_init(m=5)(10, key=jax.random.key(1)), task.draw(50, jax.random.key(2))
    net = net.put({"a": jnp.abs(net.a), "c": jnp.asarray(-3.0)})
    through = measured(Performance(500), task, net, seen)
    slowly = measured(Performance(500), task, Wrapped(net), seen)
    x, y = task.sample(500, key=jax.random.key(3))
    assert through["test_accuracy"] == slowly["test_accuracy"] == accuracy(net(x), y)
    assert 0 < through["test_accuracy"] < 100


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e20])
def test_cosines_do_not_depend_on_the_scale_of_the_weights(scenario, scale):
    """Weights of 1e-25 have squares that underflow in single precision."""
    task, net, seen = scenario
    expected = np.asarray(net.w @ task.u / jnp.linalg.norm(net.w, axis=1))
    found = Alignment().look(task, net.put({"w": net.w * scale}), seen=seen, key=jax.random.key(3))
    np.testing.assert_allclose(found["cosines"][:, 0], expected, rtol=1e-4)
    assert found["cosine"] == pytest.approx(np.max(expected), rel=1e-4)


def test_a_neuron_of_weight_zero_has_cosine_zero(scenario):
    task, net, seen = scenario
    found = Alignment().look(
        task, net.put({"w": jnp.zeros_like(net.w)}), seen=seen, key=jax.random.key(3)
    )
    np.testing.assert_array_equal(found["cosines"], 0)


def test_a_silhouette_keeps_at_most_the_asked_number_of_neurons(scenario):
    task, net, seen = scenario
    assert len(Silhouette(2).look(task, net, seen=seen, key=jax.random.key(3))["neurons"]) == 2
    assert len(Silhouette(100).look(task, net, seen=seen, key=jax.random.key(3))["neurons"]) == 6


@pytest.mark.parametrize(
    "make", [lambda: Performance(0), lambda: Performance(5, loss="x"), lambda: Silhouette(0)]
)
def test_empty_probes_are_refused(make):
    with pytest.raises(BadInput):
        make()


def test_a_silhouette_keeps_all_angles():
    task = drawn(Halfspace(9), jax.random.key(0))
    net = small_init(4)(9, key=jax.random.key(1))
    whole = {"neurons": net.first_layer, "directions": task.features}
    reduced = Silhouette(8).look(task, net, seen=None, key=jax.random.key(3))
    assert reduced["neurons"].shape == (8, 9) and reduced["directions"].shape == (1, 9)
    unit = lambda w: w / np.linalg.norm(w, axis=1, keepdims=True)  # noqa: E731
    for part in ("neurons", "directions"):
        expected = unit(whole["neurons"]) @ unit(whole[part]).T
        np.testing.assert_allclose(
            unit(reduced["neurons"]) @ unit(reduced[part]).T, expected, atol=1e-5
        )


def test_clusters_count_neurons_and_centers():
    task = CubeMixture(jnp.eye(2), 0.1)  # centers (±1, ±1)/√2
    w = jnp.array([[1.0, 1.0], [2.0, 2.1], [1.0, 0.0], [-3.0, 3.0]])
    net = TwoLayer(w, jnp.zeros(4), jnp.array([1.0, -1.0, 1.0, -1.0]), jnp.zeros(()), "relu")
    found = Clusters(0.95).look(task, net, seen=None, key=jax.random.key(3))
    assert (float(found["clustered"]), float(found["covered"])) == (0.75, 0.5)
    assert float(found["least_cosine"]) == pytest.approx(0.0, abs=1e-6), (
        "no neuron looks towards (−1, −1): the nearest is at a right angle"
    )
    both = Clusters(0.95, opposites=True).look(task, net, seen=None, key=jax.random.key(3))
    assert float(both["covered"]) == 1.0
    # Labels of the centers: +1, +1 and −1 for the three neurons near one; two of them agree.
    assert float(
        SecondLayerSigns(0.95).look(task, net, seen=None, key=jax.random.key(3))["agreement"]
    ) == pytest.approx(2 / 3)


def test_kinks_are_counted_within_the_data():
    task = drawn(Halfspace(1), jax.random.key(0))
    seen = Batch(jnp.linspace(-1, 1, 100)[:, None], jnp.ones(100))
    net = TwoLayer(
        jnp.array([[1.0], [0.1], [0.1], [1.0]]),
        jnp.array([0.0, 0.5, -3.0, 1.0]),
        jnp.ones(4),
        jnp.zeros(()),
    )
    assert float(Kinks(0.01).look(task, net, seen=seen, key=jax.random.key(3))["kinked"]) == 0.5


def test_several_classes_and_several_numbers_have_their_metrics():
    y = jnp.eye(3)
    assert accuracy(jnp.array([[2.0, 1, 0], [3, 1, 0], [0, 0, jnp.nan]]), y) == pytest.approx(
        100 / 3
    )
    assert (
        squared_error(jnp.zeros((3, 3)), y) == 1
        and squared_error(jnp.array([1.0, 3.0]), jnp.zeros(2)) == 5
    )
    assert (
        metric_of(Outputs("classes", 3)) is ACCURACY
        and metric_of(Outputs("reals", 15)) is SQUARED_ERROR
    )
    assert (
        ACCURACY.better(90, 80)
        and SQUARED_ERROR.better(0.1, 0.2)
        and ACCURACY.error(95.0) == pytest.approx(0.05)
    )
    for wrong in (
        Outputs("signs", 2),
        Outputs("classes", 1),
        Outputs("reals", 0),
        Outputs("words"),
    ):
        with pytest.raises(BadInput):
            wrong.check()
