"""Complexities of smooth functions against closed forms, and Taylor series against the
functions.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.core.series import (
    SERIES,
    SIGMOID,
    TANH,
    cosine,
    exponential,
    polynomial_series,
    series_of,
    sine,
)
from unlazy.theory.smooth_complexity import log_sample_complexity, slope_complexity, tail


@pytest.mark.parametrize("c", [0.5, 1.0, 2.0])
def test_slope_complexities_of_entire_functions(c):
    assert slope_complexity(exponential(c), 7.0) == pytest.approx(7 * ((1 + c) * math.exp(c) - 1))
    assert slope_complexity(sine(c), 7.0) == pytest.approx(7 * (math.sinh(c) + c * math.cosh(c)))
    assert slope_complexity(cosine(c), 7.0) == pytest.approx(7 * (math.cosh(c) + c * math.sinh(c)))


def test_slope_complexities_of_squashing_functions_are_those_of_the_tangent():
    assert slope_complexity(TANH, 1.0) == pytest.approx(math.tan(1) + 1 / math.cos(1) ** 2)
    assert slope_complexity(SIGMOID, 1.0) == pytest.approx(
        0.5 + 0.5 * math.tan(0.5) + 0.25 / math.cos(0.5) ** 2
    )


def test_slope_complexity_of_a_polynomial():
    assert slope_complexity(polynomial_series(1.0, -2.0, 0.0, 0.5), 3.0) == pytest.approx(
        3 * (1 + 4 + 2)
    )


@pytest.mark.parametrize(
    ("series", "plain"),
    [(exponential(0.5), math.expm1), (sine(0.5), math.sinh), (cosine(0.5), math.cosh)],
)
def test_sample_complexity_has_its_closed_part(series, plain):
    """For tiny log(1/ε) the second part is that of i = 0 alone, and negligible."""
    constant = 12.0
    closed = plain(0.5 * constant)
    constant_term = 1.0 if plain is math.cosh else 0.0
    assert math.exp(log_sample_complexity(series, 1e-12, constant)) == pytest.approx(
        closed + constant_term, rel=1e-4
    )


def test_sample_complexity_is_the_sum_it_is_defined_by():
    series, constant, log_inverse = sine(1.5), 5.0, 9.0
    sizes = np.exp(series.log_sizes(120))
    direct = sum(
        (constant**i + (math.sqrt(log_inverse) / math.sqrt(i) * constant) ** i if i else 2.0)
        * sizes[i]
        for i in range(120)
    )
    assert math.exp(log_sample_complexity(series, log_inverse, constant)) == pytest.approx(direct)


def test_entire_functions_stay_below_one_over_epsilon_and_cut_ones_below_a_power():
    assert (
        log_sample_complexity(exponential(), 1e6) / 1e6
        < 0.1
        < log_sample_complexity(exponential(), 1e4) / 1e4
    )
    powers = [log_sample_complexity(TANH, at, degree=int(3 * at)) / at for at in (100, 200, 400)]
    assert max(powers) / min(powers) < 1.02
    assert all(tail(TANH, int(3 * at)) < math.exp(-at) for at in (20, 100))


@pytest.mark.parametrize("name", SERIES)
def test_functions_are_the_sums_of_their_series(name):
    """Σ|c_i| bounds the function, with equality at the maximum if all terms have one sign."""
    series = series_of(name)
    z = np.linspace(-1, 1, 41)
    sizes = np.exp(series.log_sizes(200))
    bound = np.sum(sizes * np.abs(z[:, None]) ** np.arange(200), axis=1)
    assert np.all(np.abs(np.asarray(series(jnp.asarray(z)))) <= bound + 1e-5)


def test_an_unknown_function_is_refused():
    with pytest.raises(BadInput, match="smooth function"):
        series_of("relu")
