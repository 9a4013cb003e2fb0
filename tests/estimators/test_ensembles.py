"""Held-out selection and ensembles of networks."""

import numpy as np

from unlazy import estimators as e
from unlazy.estimators.ensembles import PARTS, SHARPNESS, DistinctRows, rounded_up, sharpened_losses

DRAW = np.random.default_rng(0)
SHORT = {"width": 16, "min_steps": 120, "max_steps": 120, "random_state": 0}


def test_rows_are_distinct_with_their_weights_added():
    x = np.repeat(DRAW.standard_normal((30, 2)), 2, axis=0)
    y = np.ones((60, 1))
    once = DistinctRows.of(x[::2], y[::2], np.full(30, 2.0))
    twice = DistinctRows.of(x, y, np.ones(60))
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)


def test_parts_are_disjoint_and_contain_every_class():
    y = np.eye(3)[np.arange(100) % 3]
    rows = DistinctRows(DRAW.standard_normal((100, 2)), y, np.ones(100))
    parts = rows.parts(0)
    assert parts.shape == (PARTS, 20) and len(np.unique(parts)) == 100
    assert all(6 <= count <= 7 for part in parts for count in y[part].sum(axis=0))


def test_losses_are_compared_after_calibration():
    score = DRAW.standard_normal((1, 4000, 1))
    y = np.where(DRAW.random((1, 4000, 1)) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
    for factor in (0.5, 3.0):
        losses = sharpened_losses("logistic", factor * score, y, np.ones((1, 4000)))
        assert 0.8 < factor * SHARPNESS[np.argmin(losses)] < 1.25
    one_hot = np.concatenate([y < 0, y > 0], axis=-1).astype(float)
    both = np.concatenate([-score / 2, score / 2], axis=-1)
    np.testing.assert_allclose(
        sharpened_losses("softmax", both, one_hot, np.ones((1, 4000))),
        sharpened_losses("logistic", score, y, np.ones((1, 4000))),
    )


def test_held_out_rows_select_a_strong_penalty_for_noise_and_a_weak_one_for_signal():
    x = DRAW.standard_normal((120, 12))
    noise = e.TwoLayerRegressor(**SHORT).fit(x, DRAW.standard_normal(120))
    rule = e.TwoLayerRegressor(**SHORT).fit(x, x[:, 0] - x[:, 1])
    assert (
        noise.held_out_losses_.shape == (8, 6)
        and noise.held_out_losses_.min() > 0.8 > rule.held_out_losses_.min()
    )
    assert noise.steps_ <= rule.steps_ and len(rule.networks_) == 8
    assert np.std(noise.predict(x)) < 0.7


def test_integer_weights_equal_repetitions_exactly():
    x, weight = DRAW.standard_normal((60, 3)), DRAW.integers(1, 4, 60)
    y = x[:, 0] > 0
    weighted = e.TwoLayerClassifier(**SHORT).fit(x, y, sample_weight=weight)
    repeated = e.TwoLayerClassifier(**SHORT).fit(np.repeat(x, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.decision_function(x), repeated.decision_function(x))


def test_sizes_are_rounded_up_a_little():
    assert (
        rounded_up(100, 128) == 128
        and rounded_up(129, 128) == 256
        and rounded_up(1100, 128) == 1152
    )
