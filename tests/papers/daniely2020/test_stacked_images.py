import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted
from unlazy.learners.gradient import GradientDescent
from unlazy.papers.daniely2020.stacked_images import (
    EPSILON,
    METHODS,
    RHO,
    SIZES,
    AdadeltaDescent,
    HiddenInit,
    RawDigits,
    stacked,
)
from unlazy.tasks.equal_bits import EqualBits

KEY = jax.random.key(1)


@pytest.mark.parametrize("kind", METHODS.values())
def test_hidden_layers_are_those_of_their_definition(kind):
    d, m = 30, 2000
    net = HiddenInit(m=m, kind=kind)(d, key=KEY)
    x = np.random.default_rng(0).normal(size=(5, d)).astype(np.float32)
    h = x @ np.asarray(net.w).T + np.asarray(net.b)
    if kind == "gated":
        h = np.where(x @ np.asarray(net.gate).T > 0, h, 0)
    else:
        h = np.cos(h) if kind == "fixed cosine" else np.maximum(h, 0)
    assert np.allclose(net(jnp.asarray(x)), h @ np.asarray(net.a), atol=1e-4)
    limit = np.sqrt(6 / (d + m))
    if kind == "fixed cosine":
        assert np.std(net.w) == pytest.approx(4 / np.sqrt(d), rel=0.02)
        assert 0 <= np.min(net.b) < 0.1 and 6.2 < np.max(net.b) <= 2 * np.pi + 1e-6
    else:
        assert 0.99 * limit < np.max(np.abs(net.w)) <= limit and not np.any(np.asarray(net.b))
    assert np.max(np.abs(net.a)) <= np.sqrt(6 / (m + 1)) and len(net.gate) == m * (kind == "gated")


def test_adadelta_is_the_published_method():
    """Three steps, compared with a plain loop."""
    task = drawn(EqualBits(d=6, k=3), KEY)
    descent = AdadeltaDescent({"w": 1.0, "a": 0.5}, steps=3, loss="hinge")
    learner = GradientDescent(HiddenInit(m=4, kind="relu"), (descent,), record=(0,))
    trace = fitted(learner, task.sampler, 40, KEY)
    net, (x, y) = trace.at(0), trace.seen

    def loss(groups):
        return jnp.mean(jnp.maximum(1 - y * net.put(groups)(x), 0.0))

    groups = net.get(("w", "a"))
    square, moved = ({name: jnp.zeros_like(p) for name, p in groups.items()} for _ in range(2))
    for _ in range(3):
        for name, g in jax.grad(loss)(groups).items():
            square[name] = RHO * square[name] + (1 - RHO) * g * g
            step = jnp.sqrt(moved[name] + EPSILON) / jnp.sqrt(square[name] + EPSILON) * g
            moved[name] = RHO * moved[name] + (1 - RHO) * step * step
            groups = groups | {name: groups[name] - (1.0 if name == "w" else 0.5) * step}
    last = trace.at(-1)
    assert np.allclose(last.w, groups["w"], atol=1e-5) and np.allclose(
        last.a, groups["a"], atol=1e-5
    )
    assert np.array_equal(last.b, net.b) and not np.allclose(last.w, net.w, atol=1e-5)


def test_only_the_second_layer_of_fixed_features_is_trained_and_examples_are_fresh():
    for scale, size in SIZES.items():
        arms = stacked(scale, 1.0)
        for name, kind in METHODS.items():
            (stage,) = arms[name].learner.stages
            assert set(stage.rates) == ({"a", "c"} if "fixed" in kind else {"w", "b", "a", "c"})
            assert arms[name].learner.draws_fresh and stage.batch == 128
            assert arms[name].n == size.epochs * (size.examples // 128) * 128
    paper = SIZES["paper"]
    assert (paper.k, paper.q, paper.epochs, paper.examples) == (3, 512, 20, 60_000)


def test_pixels_are_not_standardized():
    family = RawDigits("mnist", k=3)
    if family.missing:
        pytest.skip(family.missing)
    x, y = drawn(family, KEY).draw(20, KEY)
    assert x.shape == (20, 84, 28, 1) and np.min(x) == 0 and 0.9 < np.max(x) <= 1
    assert set(np.unique(y)) == {-1.0, 1.0}
