"""Projections onto spans of few functions, against least squares on all points."""

import itertools

import numpy as np
import pytest

from unlazy.theory.spans import ENOUGH, rank_leverages, span_risks
from unlazy.theory.walsh import points


def test_risks_are_those_of_least_squares():
    d, k, alpha = 5, 3, 0.4
    rng = np.random.default_rng(1)
    values = rng.normal(size=(1 << d, 7))
    risks, captured = span_risks(values, k, alpha)
    x = points(d)
    sets = list(itertools.combinations(range(d), k))
    minima, fractions = [], []
    for chosen in sets:
        chi = np.prod(x[:, chosen], axis=1)
        project = lambda f: values @ np.linalg.lstsq(values, f, rcond=None)[0]  # noqa: E731
        minima.append(
            min(
                np.mean((x[:, i] + alpha * chi - project(x[:, i] + alpha * chi)) ** 2)
                for i in chosen
            )
        )
        fractions.append(np.mean(project(chi) ** 2))
    np.testing.assert_allclose(np.sort(risks), np.sort(minima), rtol=1e-9)
    np.testing.assert_allclose(np.sort(captured), np.sort(fractions), rtol=1e-9)


def test_fractions_sum_to_at_most_the_number_of_functions():
    values = np.random.default_rng(0).normal(size=(1 << 6, 9))
    assert sum(span_risks(values, k, 0.3)[1].sum() for k in range(1, 7)) <= 9 + 1e-9


def test_leverages_decide_whether_a_column_can_be_singled_out():
    """The minimum of Σ_{r'≠r} ⟨M_r', a⟩² with ⟨M_r, a⟩ = ¾ is (9/16)(1/P_rr − 1)."""
    rng = np.random.default_rng(2)
    M = rng.normal(size=(4, 9)) * np.exp(2 * rng.normal(size=9))
    leverages = rank_leverages(M)
    assert leverages.sum() == pytest.approx(4)
    for r, share in enumerate(leverages):
        others = np.delete(M, r, axis=1)
        gram = others @ others.T
        a = np.linalg.solve(gram, M[:, r])
        a *= 0.75 / (a @ M[:, r])
        assert np.sum((others.T @ a) ** 2) == pytest.approx(9 / 16 * (1 / share - 1))
    assert 9 / 16 * (1 / ENOUGH - 1) == pytest.approx(1 / 16)
