import numpy as np
import pytest

from unlazy.tasks.spectrum import (
    corners,
    cube_spectrum,
    gaussian_spectrum,
    information_exponent,
    leap,
)


@pytest.mark.parametrize(
    ("support", "expected"),
    [
        ([(1, 0), (1, 1), (1, 1)], 1),
        ([(1, 1, 1)], 3),
        ([(1, 0, 0, 0), (1, 1, 1, 0), (0, 1, 1, 1)], 2),
        ([(0, 0)], 0),
        ([(2, 0), (2, 1)], 2),
        ([(1, 1, 0, 0), (0, 0, 1, 0), (0, 1, 1, 1), (1, 0, 1, 0)], 1),
    ],
)
def test_leap_of_a_support(support, expected):
    assert leap(support) == expected


def test_a_spectrum_gives_the_function_back():
    values = np.random.default_rng(0).normal(size=8)
    points = corners(3)
    again = sum(
        c * np.prod(points ** np.array(index), axis=1) for index, c in cube_spectrum(values).items()
    )
    np.testing.assert_allclose(again, values, atol=1e-12)


def test_hermite_coefficients_of_a_polynomial():
    """u₀² − 1 = √2·h₂, and u₀u₁ = h₁h₁."""
    found = gaussian_spectrum(lambda u: u[:, 0] ** 2 - 1 + 3 * u[:, 0] * u[:, 1], 2, 3, nodes=12)
    assert found == pytest.approx({(2, 0): np.sqrt(2), (1, 1): 3.0})
    assert information_exponent(found) == 2 and information_exponent([(0,)]) == 0
