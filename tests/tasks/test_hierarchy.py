"""Hierarchical targets: moments against enumeration, and invalid parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_family
from programs import drawn, sampled
from unlazy.core.errors import BadInput
from unlazy.tasks.hierarchy import HardInstance, PairHierarchy, RealParity, SmoothHierarchy
from unlazy.tasks.spectrum import corners


@pytest.mark.parametrize(
    "family",
    [
        PairHierarchy(d=10, order=3, beta=0.2),
        HardInstance(d=12, fair=8, k=2, background="constant"),
        HardInstance(d=12, fair=8, k=2, background="tied"),
        HardInstance(d=12, fair=8, k=4, background="biased", alpha=0.7),
        RealParity(d=9, k=4),
        SmoothHierarchy(d=5, inner="tanh", outer="exp"),
    ],
    ids=["pairs", "constant", "tied", "biased", "parity", "smooth"],
)
def test_families_keep_the_contract(family):
    check_family(family)


def test_pairs_by_enumeration():
    task = drawn(PairHierarchy(d=8, alpha=0.3, beta=0.5, order=4), jax.random.key(0))
    x = jnp.asarray(corners(8))
    h = task.base_signal(x)
    pairs = np.asarray(x)[:, np.asarray(task.where)]
    np.testing.assert_array_equal(h, pairs[:, ::2] * pairs[:, 1::2])
    g = np.prod(np.asarray(h), axis=1)
    np.testing.assert_allclose(task.composite(h), g[:, None] * np.array([-1, 1, -1, 1]))
    assert np.mean(np.sum(np.asarray(task.target(x)) ** 2, axis=1)) == pytest.approx(
        float(task.chance)
    )
    assert np.mean(
        np.sum((np.asarray(task.target(x)) - 0.5 * np.asarray(h)) ** 2, axis=1)
    ) == pytest.approx(4 * 0.09)


def test_the_hard_instance_is_as_printed():
    task = drawn(HardInstance(d=10, fair=6, k=3, alpha=0.4, background="tied"), jax.random.key(1))
    x, y = sampled(task, 500, jax.random.key(2))
    assert np.all(np.asarray(task.where) < 6)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    z = np.sqrt(10) * np.asarray(x)
    assert np.all(z[:, 6:] == z[:, 6:7]) and abs(z[:, 6].mean()) < 0.2
    inner = z[:, np.asarray(task.where)]
    np.testing.assert_allclose(y, inner + 0.4 * np.prod(inner, axis=1, keepdims=True), rtol=1e-5)


def test_smooth_neurons_have_the_weights_of_the_concept_class():
    task = drawn(SmoothHierarchy(d=7, k=3, p=4, q=2), jax.random.key(0))
    for weights in (task.w, task.v):
        np.testing.assert_allclose(np.linalg.norm(weights, axis=-1), 0.5**0.5, rtol=1e-5)
    assert np.max(np.abs(task.a)) <= 1 and np.max(np.abs(task.c)) <= 1
    x = task.inputs(4, jax.random.key(1))
    by_hand = sum(task.a[1, i] * np.sin(x @ task.w[1, i]) for i in range(4))
    np.testing.assert_allclose(task.base_signal(x)[:, 1], by_hand, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PairHierarchy(d=7), "even"),
        (lambda: PairHierarchy(d=6, order=4), "order"),
        (lambda: PairHierarchy(alpha=-1), "≥ 0"),
        (lambda: PairHierarchy(alpha=0, beta=0), "nothing to learn"),
        (lambda: HardInstance(d=5, k=6), "k ≤ d"),
        (lambda: HardInstance(background="odd"), "background"),
        (lambda: SmoothHierarchy(inner="relu"), "smooth function"),
        (lambda: RealParity(d=4, k=6), "k ≤ d"),
    ],
)
def test_invalid_parameters_are_refused(make, says):
    with pytest.raises(BadInput, match=says):
        make()
