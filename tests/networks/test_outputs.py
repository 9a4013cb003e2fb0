"""Networks with several outputs and the residual network, against plain loops and automatic
differentiation.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import is_close
from programs import fitted
from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.core.losses import LOSSES, example_losses
from unlazy.core.metrics import Outputs
from unlazy.kernels.finite import Conjugate, Tangent, by_layers
from unlazy.kernels.gram import gram
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import AntisymmetricInit, PlainInit, ResNetInit
from unlazy.networks.residual import ALL, HIDDEN, ThreeLayerResNet
from unlazy.networks.two_layer import TwoLayer
from unlazy.tasks.base import Batch, Sampler, WeightedBatch

KEY = jax.random.key(7)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def plain(m=5):
    return PlainInit(m=m, w_scale=0.7, b_scale=0.5, a_scale=0.6)


def residual(bottleneck=True, m=5, activation="relu"):
    scales = {"w_scale": 0.7, "b_scale": 0.5, "v_scale": 0.8, "e_scale": 0.3, "a_scale": 0.6}
    return ResNetInit(m=m, **scales, bottleneck=bottleneck, activation=activation)


def relu(t):
    return np.maximum(t, 0)


@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_two_layers_with_outputs(outputs):
    net = plain()(4, outputs=outputs, key=KEY).put(
        {"c": jnp.asarray(0.3) if outputs is None else jnp.arange(0.5, outputs)}
    )
    x = np.asarray(jax.random.normal(KEY, (6, 4)))
    expected = np.zeros((6, outputs or 1))
    for n in range(6):
        for o in range(outputs or 1):
            a, c = (net.a, net.c) if outputs is None else (net.a[:, o], net.c[o])
            expected[n, o] = sum(a[i] * relu(x[n] @ net.w[i] + net.b[i]) for i in range(5)) + c
    np.testing.assert_allclose(net(x), expected[:, 0] if outputs is None else expected, rtol=1e-12)


@pytest.mark.parametrize("bottleneck", [True, False])
@pytest.mark.parametrize("outputs", [None, 3])
def test_residual_network_is_the_formula(outputs, bottleneck):
    net = residual(bottleneck)(4, outputs=outputs, key=KEY)
    W, b1, V, b2 = (np.asarray(p) for p in (net.w, net.b, net.v, net.e))
    A = np.asarray(net.a).reshape(5, -1).T
    U = V @ A if bottleneck else V
    x = np.asarray(jax.random.normal(KEY, (6, 4)))
    out = np.stack([A @ (relu(W @ row + b1) + relu(U @ relu(W @ row + b1) + b2)) for row in x])
    np.testing.assert_allclose(net(x), out[:, 0] if outputs is None else out, rtol=1e-10)


def test_initializations_have_the_given_scales():
    net = residual(bottleneck=False, m=150)(90, outputs=40, key=KEY)
    for name, scale in {"w": 0.7, "b": 0.5, "v": 0.8, "e": 0.3, "a": 0.6}.items():
        assert np.std(getattr(net, name)) == pytest.approx(scale, rel=0.15)
    net = plain(m=150)(90, outputs=40, key=KEY)
    for name, scale in {"w": 0.7, "b": 0.5, "a": 0.6}.items():
        assert np.std(getattr(net, name)) == pytest.approx(scale, rel=0.15)
    assert not np.any(net.c) and plain().width == residual().width == 5


def test_residual_network_enters_a_basis():
    net = residual()(8, outputs=2, key=KEY)
    basis = jnp.linalg.qr(jax.random.normal(KEY, (8, 3)))[0].T
    z = jax.random.normal(KEY, (10, 3))
    np.testing.assert_allclose(net.enter(basis)(z), net(z @ basis), rtol=1e-9)
    np.testing.assert_allclose(net.enter(basis).leave(basis).w, net.w, rtol=1e-9)


@pytest.mark.parametrize(
    ("init", "o", "groups", "loss"),
    slow_but_first(
        [
            (residual(False), 3, ALL, "softmax"),
            (plain(), 1, ("w", "a"), "hinge"),
            (plain(), 1, ("w", "a"), "logistic"),
            (plain(), 3, ("w", "b", "a", "c"), "squared"),
            (residual(), 3, HIDDEN, "squared"),
        ],
        2,
    ),
)
def test_descent_with_outputs_and_weights_is_the_plain_loop(init, o, groups, loss):
    """The loss is the weighted mean over examples of the sum over outputs."""
    x = jax.random.normal(KEY, (20, 4))
    y = jax.random.normal(jax.random.key(1), (20, o))
    y = (
        y
        if loss == "squared"
        else jnp.where(y > 0, 1.0, -1.0)
        if loss != "softmax"
        else jax.nn.one_hot(jnp.argmax(y, 1), o)
    )
    weight = jnp.linspace(0, 2, 20)
    learner = GradientDescent(
        init, (Descent(dict.fromkeys(groups, 0.1), steps=4, loss=loss, decay={"w": 0.05}),)
    )
    sampler = Sampler(lambda n, key: WeightedBatch(x, y, weight), 4, outputs=Outputs("reals", o))
    found = jax.jit(lambda key: learner.fit(sampler, 20, key=key))(KEY).at(-1)
    net = start = init(4, outputs=o, key=jax.random.split(KEY, 3)[0])

    def objective(net):
        score = net(x)
        if loss == "softmax":
            each = jnp.stack(
                [
                    -jnp.log(jnp.exp(s[jnp.argmax(t)]) / jnp.sum(jnp.exp(s)))
                    for s, t in zip(score, y, strict=True)
                ]
            )
        else:
            each = jnp.stack(
                [sum(LOSSES[loss](score[i, k], y[i, k]) for k in range(o)) for i in range(20)]
            )
        return sum(w * e for w, e in zip(weight, each, strict=True)) / 20

    gradient = jax.jit(jax.grad(objective))
    for _ in range(4):
        g = gradient(net)
        net = net.put(
            {
                name: getattr(net, name)
                - 0.1 * (getattr(g, name) + 0.1 * (name == "w") * getattr(net, name))
                for name in groups
            }
        )
    assert is_close(found, net, 1e-9)
    for name in set(vars(net)) - {"activation", "bottleneck", *groups}:
        np.testing.assert_array_equal(getattr(found, name), getattr(start, name))


def test_hidden_groups_leave_the_output_layer_alone_in_minibatches():
    sample = Batch(jax.random.normal(KEY, (32, 4)), jax.random.normal(KEY, (32, 2)))
    learner = GradientDescent(
        residual(),
        (Descent(dict.fromkeys(HIDDEN, 0.1), steps=6, batch=8, optimizer="adam", loss="squared"),),
    )
    sampler = Sampler(lambda n, key: sample, 4, outputs=Outputs("reals", 2))
    trace = fitted(learner, sampler, 32, KEY)
    start = residual()(4, outputs=2, key=jax.random.split(KEY, 3)[0])
    np.testing.assert_array_equal(trace.at(-1).a, start.a)
    assert all(np.any(getattr(trace.at(-1), name) != getattr(start, name)) for name in HIDDEN)


@pytest.mark.parametrize(
    ("init", "outputs"),
    slow_but_first(
        [(plain(), 3), (residual(), 3), (plain(), 1), (residual(False), 3), (residual(), None)], 2
    ),
)
def test_kernels_of_finite_networks_with_outputs(init, outputs):
    """The tangent kernel is the mean over outputs of products of gradients."""
    net = init(4, outputs=outputs, key=KEY)
    x = jax.random.normal(KEY, (7, 4))
    jacobian = jax.jacrev(lambda net: net(x).reshape(7, -1))(net)
    flat = np.concatenate(
        [np.asarray(leaf).reshape(7, outputs or 1, -1) for leaf in jax.tree.leaves(jacobian)],
        axis=2,
    )
    expected = np.einsum("iop,jop->ij", flat, flat) / (outputs or 1)
    np.testing.assert_allclose(gram(Tangent(net), x), expected, rtol=1e-9)
    np.testing.assert_allclose(gram(Conjugate(net), x), net.hidden(x) @ net.hidden(x).T, rtol=1e-9)


def test_one_output_has_no_axis():
    net = AntisymmetricInit(m=3, w_scale=1.0, b_scale=1.0, a_scale=1.0)(4, key=KEY)
    assert (
        isinstance(net, TwoLayer)
        and net.a.shape == (6,)
        and net.c.shape == ()
        and net(jnp.ones((2, 4))).shape == (2,)
    )
    assert isinstance(residual()(4, key=KEY), ThreeLayerResNet) and residual()(4, key=KEY)(
        jnp.ones((2, 4))
    ).shape == (2,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plain(m=0), "m must be"),
        (lambda: residual(activation="tahn"), "Did you mean 'tanh'"),
        (
            lambda: PlainInit(m=2, w_scale=-1.0, b_scale=0, a_scale=0),
            "w_scale .a standard deviation. must be",
        ),
        (
            lambda: ResNetInit(
                m=2, w_scale=1, b_scale=0, v_scale=float("nan"), e_scale=0, a_scale=0
            ),
            "v_scale",
        ),
        (lambda: residual()(3, key=KEY).get(("c",)), "no parameter group named 'c'"),
        (lambda: example_losses("squared", jnp.ones((3, 2)), jnp.ones(3)), "Scores have shape"),
        (lambda: example_losses("softmax", jnp.ones(3), jnp.ones(3)), "one output per class"),
        (lambda: classes_weighted_with_outputs(), "class_weighted requires labels ±1"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def classes_weighted_with_outputs():
    sample = Batch(jnp.ones((4, 2)), jnp.ones((4, 2)))
    stage = Descent({"w": 1.0}, steps=1, class_weighted=True)
    sampler = Sampler(lambda n, key: sample, 2, outputs=Outputs("reals", 2))
    return GradientDescent(plain(), (stage,)).fit(sampler, 4, key=KEY)


@pytest.mark.parametrize(
    ("bottleneck", "outputs"),
    slow_but_first([(False, 3), (True, None), (False, None), (True, 3)], 2),
)
def test_the_tangent_kernel_is_that_of_the_jacobian(bottleneck, outputs):
    """With a bottleneck, where layers share weights, and without."""
    init = ResNetInit(
        m=7, w_scale=0.5, b_scale=0.3, v_scale=0.4, e_scale=0.2, a_scale=0.6, bottleneck=bottleneck
    )
    net = init(4, outputs=outputs, key=jax.random.key(3))
    x = jax.random.normal(jax.random.key(4), (9, 4))
    leaves = jax.tree.leaves(jax.jit(jax.jacobian(lambda net: net(x)))(net))
    expected = sum(leaf.reshape(9, -1) @ leaf.reshape(9, -1).T for leaf in leaves) / (outputs or 1)
    assert (by_layers(net, x) is None) == bottleneck
    np.testing.assert_allclose(gram(Tangent(net), x), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        gram(Tangent(net), x, x[:3]), expected[:, :3], rtol=1e-10, atol=1e-10
    )
