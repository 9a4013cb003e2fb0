import dataclasses

import jax
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NTK
from unlazy.lab.power_laws import crossing, fit, slope
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.papers.glasgow2023 import sample_size
from unlazy.papers.glasgow2023.sample_curves import PredictedSizes
from unlazy.papers.glasgow2023.sample_size import KernelRidge, Online, SampleSizes, Stream, first_stable_crossing
from unlazy.tasks.multi_index import MultiIndex, product

SIZES = np.arange(10.0, 80.0, 10.0)


def test_a_crossing_must_last():
    assert first_stable_crossing(SIZES, np.array([0.5, 0.04, 0.3, 0.1, 0.0, 0.0, 0.0]), 0.05) == pytest.approx(45.0)
    assert first_stable_crossing(SIZES, np.array([0.5, 0.04, 0.3, 0.1, 0.2, 0.0, 0.0]), 0.05) is None
    assert first_stable_crossing(SIZES, np.zeros(7), 0.05) == 10.0


def test_a_planted_exponent_is_found():
    d = np.array([32.0, 64, 128, 256])
    rng = np.random.default_rng(0)
    samples = 3 * d**1.5 * np.exp(0.05 * rng.normal(size=(6, 4)))
    law = fit(d, samples)
    assert law.exponent == pytest.approx(1.5, abs=0.05) and 0.01 < law.interval[1] - law.interval[0] < 0.15
    assert law.interval[0] < law.exponent < law.interval[1]
    assert law(d)[0] == pytest.approx(3 * 32**1.5, rel=0.1)
    # One factor log d costs 1/log d of the slope.
    plain = fit(d, 3 * d * np.log(d) * np.ones((2, 1)))
    assert plain.with_log == pytest.approx(1.0) and plain.exponent > 1.15
    assert slope(np.array([0.0, 1, 2]), np.array([1.0, 3, 5])) == pytest.approx(2)


def test_curves_cross_where_they_do():
    d = np.array([10.0, 100.0, 1000.0])
    assert crossing(d, 100 * d, d, d**2) == pytest.approx(100)
    assert crossing(d, d**2, d, 100 * d) is None  # the first lies below only at first
    assert crossing(d, d, d, 2 * d) is None


def test_a_kernels_sample_size_is_as_predicted():
    found = SampleSizes(MultiIndex(d=8), KernelRidge(Polynomial(2, 0.0)), (12, 20), target=0.1, test=1000).measure(key=jax.random.key(0))
    np.testing.assert_allclose(found["ratio"], 1, atol=0.2)
    assert 1.6 < found["exponent"][0] < 2.5 and found["exponent_log"][0] < found["exponent"][0]


def test_sgd_finds_xor_and_a_named_learner_the_same():
    family, key = MultiIndex(d=16), jax.random.key(1)
    online = Online(width=32, expected=64)
    n = online.sample_size(family, 0.1, 512, key=key)
    assert 100 < n < 64 * 16
    learner = mean_field_sgd(width=32, batch=16)
    assert Stream(learner, most=64 * 16, looks=64).sample_size(family, 0.1, 512, key=key) == pytest.approx(n)


def test_a_target_out_of_reach_is_refused(monkeypatch):
    """A parity of three bits is odd, and ReLU networks without bias have no odd part above degree 1."""
    family = MultiIndex(d=6, polynomial=product(3))
    monkeypatch.setattr(sample_size, "DOUBLINGS", 2)
    with pytest.raises(BadInput, match="do not reach"):
        Online(width=8, expected=2).sample_size(family, 0.05, 64, key=jax.random.key(0))
    with pytest.raises(BadInput, match="fresh minibatches"):
        Stream(dataclasses.replace(mean_field_sgd(width=8, batch=8), fresh=False))


def test_predictions_alone():
    found = PredictedSizes(MultiIndex(d=8), KernelRidge(NTK()), (1000, 10_000)).measure(key=jax.random.key(0))
    assert found["exponent"][0] == pytest.approx(2, abs=0.02)
