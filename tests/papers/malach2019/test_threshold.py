"""Threshold degrees of AND of ORs, and gradients as statistical queries."""

from fractions import Fraction

import jax
import numpy as np
import pytest

from unlazy.papers.malach2019.queries import GradientQueries, tolerance
from unlazy.papers.malach2019.threshold import (
    ThresholdDegree,
    certificate,
    counts,
    monomials,
    null_vector,
    threshold_degree,
)
from unlazy.theory.statistical_queries import parities


def test_threshold_degrees_of_known_functions():
    t = np.arange(6)[:, None]
    assert threshold_degree(np.ones(6), t) == 0
    assert threshold_degree(np.where(t[:, 0] >= 3, 1, -1), t) == 1
    # The sign of a parity changes at every count, so that its degree is the number of bits.
    for bits in (1, 2, 3):
        count = np.arange(bits + 1)[:, None]
        signs = np.where(count[:, 0] % 2 == 1, -1, 1)
        assert certificate(signs, monomials_of_one(count, bits - 1)) is not None
        assert certificate(signs, monomials_of_one(count, bits)) is None


def monomials_of_one(count, degree):
    return np.stack([count[:, 0].astype(object) ** d for d in range(degree + 1)], axis=1)


def test_certificates_are_exact():
    t = counts(2, 4)
    signs = np.where(np.all(t >= 1, axis=1), 1, -1)
    found = certificate(signs, monomials(t, 1))
    assert found is not None and all(weight > 0 for weight in found.values())
    for column in monomials(t, 1).T:
        assert sum(weight * int(signs[i]) * int(column[i]) for i, weight in found.items()) == 0
    assert certificate(signs, monomials(t, 2)) is None


def test_null_vectors_are_exact():
    matrix = np.array([[1, 2, 3], [4, 5, 6], [5, 7, 9]])
    found = null_vector(matrix)
    assert found == [Fraction(1), Fraction(-2), Fraction(1)]
    with pytest.raises(AssertionError, match="no null vector"):
        null_vector(np.array([[1, 0], [0, 1]]))


@pytest.mark.parametrize("conjunction", [False, True])
def test_an_and_of_m_ors_has_degree_m_and_an_and_of_ands_degree_one(conjunction):
    found = ThresholdDegree((1, 2, 3), conjunction=conjunction).measure(key=jax.random.key(0))
    assert found["degree"].tolist() == ([1, 1, 1] if conjunction else [1, 2, 3])
    assert found["degree_gap"].tolist() == ([0, 1, 2] if conjunction else [0, 0, 0])


def test_answers_are_expectations_over_all_inputs():
    with jax.enable_x64(True):
        uniform = GradientQueries((8,)).measure(key=jax.random.key(10))
        biased = GradientQueries((8,), p=0.85).measure(key=jax.random.key(10))
        assert uniform["energy"][0] <= 1 < biased["energy"][0]
        assert uniform["queries_ratio"][0] >= 1 > biased["queries_ratio"][0]
        assert tolerance(8) == pytest.approx(56 ** (-1 / 3))
    # Directly, for one neuron: the parities of three of eight bits as rows.
    rng = np.random.default_rng(0)
    x = 2 * np.array(np.unravel_index(np.arange(256), (2,) * 8)).T - 1
    active = x @ rng.standard_normal(8) > 0
    answers = parities(8, 3) @ (active[:, None] * x) / 256
    assert np.all((answers**2).sum(axis=0) <= np.mean(active) + 1e-12)
