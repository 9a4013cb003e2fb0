import numpy as np
import pytest

from unlazy.lab.power_laws import crossing, first_stable_crossing, fit, slope

SIZES = np.arange(10.0, 80.0, 10.0)


def test_a_crossing_must_last():
    assert first_stable_crossing(
        SIZES, np.array([0.5, 0.04, 0.3, 0.1, 0.0, 0.0, 0.0]), 0.05
    ) == pytest.approx(45.0)
    assert (
        first_stable_crossing(SIZES, np.array([0.5, 0.04, 0.3, 0.1, 0.2, 0.0, 0.0]), 0.05) is None
    )
    assert first_stable_crossing(SIZES, np.zeros(7), 0.05) == 10.0


def test_a_planted_exponent_is_found():
    d = np.array([32.0, 64, 128, 256])
    rng = np.random.default_rng(0)
    samples = 3 * d**1.5 * np.exp(0.05 * rng.normal(size=(6, 4)))
    power_law = fit(d, samples)
    assert (
        power_law.exponent == pytest.approx(1.5, abs=0.05)
        and 0.01 < power_law.interval[1] - power_law.interval[0] < 0.15
    )
    assert power_law.interval[0] < power_law.exponent < power_law.interval[1]
    assert power_law(d)[0] == pytest.approx(3 * 32**1.5, rel=0.1)
    # One factor log d costs 1/log d of the slope.
    plain = fit(d, 3 * d * np.log(d) * np.ones((2, 1)))
    assert plain.with_log == pytest.approx(1.0) and plain.exponent > 1.15
    assert slope(np.array([0.0, 1, 2]), np.array([1.0, 3, 5])) == pytest.approx(2)


def test_crossings_of_curves():
    d = np.array([10.0, 100.0, 1000.0])
    assert crossing(d, 100 * d, d, d**2) == pytest.approx(100)
    assert crossing(d, d**2, d, 100 * d) is None  # the first lies below only at first
    assert crossing(d, d, d, 2 * d) is None
