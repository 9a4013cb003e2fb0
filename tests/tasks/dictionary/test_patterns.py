import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs import drawn, sampled
from unlazy.core.errors import BadInput
from unlazy.tasks.dictionary.patterns import (
    ParityMixture,
    ProductPatterns,
    UnstructuredPatterns,
    interval,
    parity,
    threshold,
)


def enumerate_moments(distribution):
    """PatternMoments by brute force over {0,1}^D, with A the first k patterns."""
    total = dict.fromkeys(("mass", "y", "positive", "relevant", "background", "y_relevant"), 0.0)
    weight, p, q = (
        np.asarray(v, float) for v in (distribution.weight, distribution.p, distribution.q)
    )
    for bits in itertools.product((0, 1), repeat=distribution.D):
        on, off = sum(bits[: distribution.k]), sum(bits[distribution.k :])
        mass = float(
            np.sum(
                weight
                * p**on
                * (1 - p) ** (distribution.k - on)
                * q**off
                * (1 - q) ** (distribution.D - distribution.k - off)
            )
        )
        y = 1 if on in distribution.P else -1
        total["mass"] += mass
        total["y"] += mass * y
        total["positive"] += mass * (y > 0)
        total["relevant"] += mass * bits[0]
        total["y_relevant"] += mass * y * bits[0]
        total["background"] += mass * bits[-1]
    variance = sum(
        k * r * (1 - r)
        for k, r in (
            (distribution.k, total["relevant"]),
            (distribution.D - distribution.k, total["background"]),
        )
    )
    return total | {
        "gamma": total["y_relevant"] - total["y"] * total["relevant"],
        "sigma": math.sqrt(variance),
    }


FAMILIES = {
    "mixture": lambda D, k, p, po: ParityMixture(d=D, D=D, k=k | 1, po=po),
    "threshold": lambda D, k, p, po: ProductPatterns(d=D, D=D, k=k, P=threshold(k), p=p, po=po),
    "interval": lambda D, k, p, po: ProductPatterns(
        d=D, D=D, k=k, P=interval(k, (k + 1) // 2, k), p=p, po=po
    ),
    "unstructured": lambda D, k, p, po: UnstructuredPatterns(d=D, D=D, k=k, P=parity(k)),
}


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=5, deadline=None)
@given(k=st.integers(1, 5), p=st.floats(0.1, 0.9), po=st.floats(0.05, 0.5))
def test_moments_equal_enumeration(name, k, p, po):
    with jax.enable_x64(True):
        family = FAMILIES[name](7, k, p, po)
        expected, found = enumerate_moments(family.distribution), family.moments
        assert abs(expected["mass"] - 1) < 1e-12
        for moment in ("positive", "gamma", "relevant", "background", "sigma"):
            assert abs(float(getattr(found, moment)) - expected[moment]) < 1e-12, moment


def test_moments_of_table_1():
    moments = ParityMixture(d=500, D=100, k=5, po=0.5).moments
    assert [float(m) for m in moments] == pytest.approx([0.5, 0.25, 0.5, 0.5, 5.0], rel=1e-6)


@pytest.mark.parametrize("po", [0.2, 0.5])
def test_sample_follows_the_exact_moments(po):
    family = ParityMixture(d=20, D=12, k=3, po=po)
    task = drawn(family, jax.random.key(0))
    n = 40_000
    x, y = sampled(task, n, jax.random.key(1))
    present = (x @ task.dictionary.T) * family.moments.sigma + task.mean[None, :]
    assert np.allclose(present, np.round(present), atol=1e-3)
    relevant = np.asarray(present)[:, np.asarray(task.relevant)]
    gamma = np.mean(y[:, None] * relevant, axis=0) - np.mean(y) * np.mean(relevant, axis=0)
    np.testing.assert_allclose(gamma, family.moments.gamma, atol=5 / math.sqrt(n))
    np.testing.assert_allclose(np.mean(x, axis=0), 0, atol=5 / math.sqrt(n))
    assert np.mean(np.sum(np.square(x), axis=1)) == pytest.approx(1, abs=0.01)
    background = np.asarray(present)[:, ~np.asarray(task.relevant)]
    np.testing.assert_allclose(np.mean(background, axis=0), po, atol=5 / math.sqrt(n))


def test_background_is_independent_only_at_one_half():
    """The deviation noted at ParityMixture: for po < 1/2 the background differs between the two
    parts of the mixture.
    """
    assert np.ptp(ParityMixture(d=9, D=9, k=3, po=0.5).distribution.q) == 0
    assert np.ptp(ParityMixture(d=9, D=9, k=3, po=0.2).distribution.q) > 0.3


def test_unstructured_inputs_have_no_correlation_with_the_label():
    assert abs(float(UnstructuredPatterns(d=9, D=9, k=4, P=parity(4)).moments.gamma)) < 1e-7


def test_label_sets():
    assert parity(5) == (1, 3, 5)
    assert threshold(5) == (3, 4, 5)
    assert threshold(4) == (3, 4)
    assert interval(30, 20, 30) == tuple(range(20, 31))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ParityMixture(d=10, D=5, k=7), "k ≤ D is required .* got k=7, D=5"),
        (lambda: ParityMixture(d=10, D=8, k=4), "k must be odd"),
        (lambda: ParityMixture(d=10, D=12, k=3), "D ≤ d"),
        (lambda: ParityMixture(d=10, D=8, k=0), "positive integer"),
        (lambda: ParityMixture(d=10, D=8, k=3, po=0.6), r"^po .* must lie in \(0, 1/2\]"),
        (lambda: ParityMixture(d=10, D=8, k=3, po=0), r"^po .* must lie in \(0, 1/2\]"),
        (lambda: ParityMixture(d=10, D=8, k=3, po=float("nan")), r"^po .* must lie in \(0, 1/2\]"),
        (
            lambda: ProductPatterns(d=10, D=8, k=3, P=(0, 1), p=0.5),
            r"P must lie in \[k\] = \{1, …, 3\}, got \[0\]",
        ),
        (lambda: ProductPatterns(d=10, D=8, k=3, P=(4,), p=0.5), "got \\[4\\]"),
        (lambda: ProductPatterns(d=10, D=8, k=3, P=(), p=0.5), "at least one"),
        (lambda: ProductPatterns(d=10, D=8, k=3, P=(1, 1), p=0.5), "no duplicates"),
        (lambda: ProductPatterns(d=10, D=8, k=3, P=(3,), p=1.0), r"^p .* must lie in \(0, 1\)"),
        (
            lambda: ProductPatterns(d=10, D=8, k=3, P=parity(3), p=0.5),
            "γ = .* UnstructuredPatterns",
        ),
        (lambda: ProductPatterns(d=10, D=8, k=3, P=(1,), p=0.9), "γ = -.*Choose another P or p"),
        (lambda: UnstructuredPatterns(d=10, D=8, k=3.0, P=(1,)), "positive integer"),
        (lambda: interval(5, 4, 2), "1 ≤ low ≤ high ≤ k"),
    ],
)
def test_invalid_parameters_are_refused_with_what_was_expected(make, says):
    with pytest.raises(BadInput, match=says):
        make()


def test_the_same_task_in_single_and_double_precision():
    """Trials are paired across precisions: task, sample and label are the same draws."""
    family = ParityMixture(d=12, D=8, k=3, po=0.3)
    single = sampled(drawn(family, jax.random.key(5)), 100, jax.random.key(6))
    with jax.enable_x64(True):
        double = sampled(drawn(family, jax.random.key(5)), 100, jax.random.key(6))
        assert double.x.dtype == jnp.float64
    np.testing.assert_allclose(single.x, double.x, atol=1e-5)
    np.testing.assert_array_equal(single.y, double.y)
