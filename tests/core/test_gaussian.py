"""Gaussian moments of activations against integrals."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from selection import slow_but_first
from unlazy.core.activations import ACTIVATIONS, activation_of
from unlazy.core.angles import arcsin
from unlazy.core.errors import BadInput
from unlazy.core.gaussian import PiecewiseLinear, Series, series_error


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_arcsin(dtype):
    t = jnp.concatenate([jnp.linspace(-1, 1, 100_001), 1 - jnp.logspace(-16, -1, 100)]).astype(
        dtype
    )
    np.testing.assert_allclose(
        arcsin(t), np.arcsin(np.asarray(t, np.float64)), rtol=3 * float(jnp.finfo(dtype).eps)
    )


def expectation(function, c, qx, qz):
    """E[f(u)·f(v)] by Gauss-Legendre rules between −1, 0, ½, 1 and 6."""

    def rule(q):
        nodes, weights = np.polynomial.legendre.leggauss(60)
        edges = sorted(
            {
                -9 * math.sqrt(q),
                9 * math.sqrt(q),
                *(t for t in (-1.0, 0.0, 0.5, 1.0, 6.0) if t < 9 * math.sqrt(q)),
            }
        )
        parts = [
            ((a + b) / 2 + (b - a) / 2 * nodes, (b - a) / 2 * weights)
            for a, b in itertools.pairwise(edges)
        ]
        return (np.concatenate(columns) for columns in zip(*parts, strict=True))

    (u, of_u), (v, of_v) = rule(qx), rule(qz)
    density = scipy.stats.multivariate_normal([0, 0], [[qx, c], [c, qz]]).pdf(
        np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1)
    )
    f = np.vectorize(function)
    return (f(u) * of_u) @ density @ (f(v) * of_v)


SCALAR = {
    "relu": (lambda t: max(t, 0.0), lambda t: float(t > 0)),
    "erf": (math.erf, lambda t: 2 / math.sqrt(math.pi) * math.exp(-t * t)),
    "truncated_relu": (lambda t: min(max(t, 0.0), 1.0), lambda t: float(0 < t < 1)),
    "relu6": (lambda t: min(max(t, 0.0), 6.0), lambda t: float(0 < t < 6)),
    "hard_tanh": (lambda t: min(max(t, -1.0), 1.0), lambda t: float(-1 < t < 1)),
    "tanh": (math.tanh, lambda t: 1 / math.cosh(t) ** 2),
    "quadratic": (lambda t: t * t, lambda t: 2 * t),
}


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize(("c", "qx", "qz"), [(0.4, 1.0, 0.7), (-0.9, 1.2, 0.8)])
def test_moments_are_the_integrals(name, c, qx, qz):
    arguments = jnp.asarray([[c]]), jnp.asarray([[qx]]), jnp.asarray([[qz]])
    value, slope = jax.jit(activation_of(name).moments.pair)(*arguments)
    assert float(value[0, 0]) == pytest.approx(expectation(SCALAR[name][0], c, qx, qz), abs=2e-8)
    assert float(slope[0, 0]) == pytest.approx(expectation(SCALAR[name][1], c, qx, qz), abs=2e-8)


def fine_rule(steep, lower, upper):
    """A Gauss-Legendre rule between `lower` and `upper`, ever finer towards the `steep` places."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    near = (t + sign * 0.5**k for t in (*steep, 0.0) for k in range(25) for sign in (-1, 0, 1))
    edges = sorted({lower, upper, *(t for t in near if lower < t < upper)})
    parts = [
        ((a + b) / 2 + (b - a) / 2 * nodes, (b - a) / 2 * weights)
        for a, b in itertools.pairwise(edges)
    ]
    return (np.concatenate(columns) for columns in zip(*parts, strict=True))


@pytest.mark.parametrize("name", ["truncated_relu", "hard_tanh", "relu6"])
@pytest.mark.parametrize("correlation", slow_but_first([0.9999999, 0.999, -0.999]))
def test_stated_error_of_piecewise_linear_slopes_at_its_maximum(name, correlation):
    """By bivariate normal probabilities: E σ'σ' = P(lower < u < upper, lower < v < upper)."""
    lower, upper = ACTIVATIONS[name].moments.kinks
    for qx, qz in ((1.0, 1.0), (1.0, 1.01), (1.0, 1.2), (0.3, 2.0)):
        c = correlation * math.sqrt(qx * qz)
        _, slope = jax.jit(activation_of(name).moments.pair)(
            jnp.asarray([[c]]), jnp.asarray([[qx]]), jnp.asarray([[qz]])
        )

        u, of_u = fine_rule([t * qx / c for t in (lower, upper)], lower, upper)
        rest = math.sqrt(qz - c * c / qx)
        below = [scipy.special.ndtr((t - c / qx * u) / rest) for t in (lower, upper)]
        exact = np.dot(
            of_u, np.exp(-u * u / (2 * qx)) / math.sqrt(2 * math.pi * qx) * (below[1] - below[0])
        )
        assert float(slope[0, 0]) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("name", ["truncated_relu", "relu6", "hard_tanh"])
def test_closed_second_moments_of_piecewise_linear_functions(name):
    q = jnp.asarray([0.0, 0.01, 1.0, 9.0])
    assert isinstance(ACTIVATIONS[name].moments, PiecewiseLinear)
    u = np.linspace(-12, 12, 48_001)
    density = scipy.stats.norm.pdf(u)
    function, derivative = (np.vectorize(f) for f in SCALAR[name])
    value, slope = ACTIVATIONS[name].moments.single(q)
    expected = [np.trapezoid(function(math.sqrt(t) * u) ** 2 * density, u) for t in q]
    np.testing.assert_allclose(value, expected, atol=1e-6)
    np.testing.assert_allclose(
        slope[1:],
        [np.trapezoid(derivative(math.sqrt(t) * u) ** 2 * density, u) for t in q[1:]],
        atol=1e-3,
    )
    np.testing.assert_allclose(
        ACTIVATIONS[name](jnp.asarray(u[::480])), function(u[::480]), atol=1e-12
    )


@pytest.mark.parametrize("name", ["relu", "erf", "truncated_relu"])
def test_series_is_within_its_stated_error_of_closed_forms(name):
    series = Series(activation_of(name).function)
    for variance in (0.3, 1.0, 4.0):
        value_error, slope_error = series_error(series, variance)
        c = variance * jnp.linspace(-1, 0.999, 41)[:, None]
        q = jnp.full((41, 1), variance), jnp.asarray([[variance]])
        exact, found = jax.jit(lambda *q: (activation_of(name).moments.pair(*q), series.pair(*q)))(
            c, *q
        )
        assert np.max(np.abs(exact[0] - found[0])) <= value_error + 1e-5 * variance
        assert np.max(np.abs(exact[1] - found[1])) <= slope_error + 1e-2
        if name == "erf":  # smooth: no kinks that the grid misses
            assert np.max(np.abs(exact[0] - found[0])) <= value_error + 1e-9
            assert np.max(np.abs(exact[1] - found[1])) <= slope_error + 1e-9


def test_stated_errors():
    for name in ("tanh", "gelu", "quadratic"):
        assert max(series_error(activation_of(name).moments, 1.0)) < 1e-9
    assert series_error(activation_of("relu").moments, 1.0) == (0.0, 0.0)


def test_a_shifted_absolute_value():
    """|t − ½|, with its value at the kink."""
    absolute = PiecewiseLinear((0.5,), (-1.0, 1.0), 0.0)
    q, c = jnp.asarray([[1.0]]), jnp.asarray([[0.3]])
    value, slope = absolute.pair(c, q, q)
    assert float(value[0, 0]) == pytest.approx(
        expectation(lambda t: abs(t - 0.5), 0.3, 1.0, 1.0), abs=2e-8
    )
    assert float(slope[0, 0]) == pytest.approx(
        expectation(lambda t: math.copysign(1, t - 0.5), 0.3, 1.0, 1.0), abs=2e-8
    )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_means_are_the_integrals(name):
    u = np.linspace(-10, 10, 200_001)
    for q in (0.0, 0.3, 4.0):
        values = np.asarray(activation_of(name)(jnp.asarray(np.sqrt(q) * u)))
        expected = np.trapezoid(values * np.exp(-(u**2) / 2), u) / math.sqrt(2 * math.pi)
        np.testing.assert_allclose(
            activation_of(name).moments.mean(jnp.asarray([q])), [expected], atol=1e-7
        )


@pytest.mark.parametrize(
    "numbers", [((1.0, 0.0), (0.0, 1.0, 0.0)), ((1.0,), (0.0,)), ((math.nan,), (0.0, 1.0))]
)
def test_invalid_piecewise_linear_functions_are_refused(numbers):
    with pytest.raises(BadInput):
        PiecewiseLinear(*numbers)
