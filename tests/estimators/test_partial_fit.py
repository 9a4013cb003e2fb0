"""`partial_fit`: training that continues from the present networks."""

import numpy as np
import pytest

from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.estimators import (
    DeepMLPRegressor,
    ThreeLayerResNetClassifier,
    TwoLayerClassifier,
    TwoLayerRegressor,
)

OPTIONS = {"width": 32, "batch_size": 32, "ensemble": 2, "random_state": 0}


def parts(count=40, rows=128, kinds=2):
    draw = np.random.default_rng(0)
    for _ in range(count):
        x = 3 + 2 * draw.standard_normal((rows, 5))
        above = (x[:, :2] > 3).sum(axis=1)
        yield x, above if kinds == 3 else (x[:, 0] > x[:, 1]).astype(int)


@pytest.mark.parametrize("kinds", slow_but_first([3, 2]))
@pytest.mark.parametrize(
    "estimator", slow_but_first([TwoLayerClassifier, ThreeLayerResNetClassifier])
)
def test_a_classifier_learns_from_parts(estimator, kinds):
    network = estimator(**OPTIONS, learning_rate=0.01)
    *seen, (x, y) = parts(kinds=kinds)
    accuracy = []
    for index, (part_x, part_y) in enumerate(seen):
        network.partial_fit(part_x, part_y, classes=range(kinds) if index == 0 else None)
        accuracy.append(np.mean(network.predict(x) == y))
    assert accuracy[-1] > 0.93 and accuracy[-1] > accuracy[0] + 0.05
    assert network.steps_ == 4 * len(seen) and np.allclose(network.predict_proba(x).sum(axis=1), 1)


@pytest.mark.parametrize("estimator", slow_but_first([TwoLayerRegressor, DeepMLPRegressor]))
def test_a_regressor_learns_from_parts(estimator):
    network = estimator(**OPTIONS, learning_rate=0.01)
    *seen, (x, _) = parts()
    for part, _ in seen:
        network.partial_fit(part, 100 + 10 * part[:, 0])
    assert network.score(x, 100 + 10 * x[:, 0]) > 0.95


def test_partial_fit_continues_a_fit_and_is_reproducible():
    (x, y), (more_x, more_y), *_ = parts(3)
    scores = []
    for _ in range(2):
        network = TwoLayerClassifier(
            **OPTIONS,
            learning_rate=0.01,
            weight_decay=0.0,
            min_steps=20,
            max_steps=20,
            early_stopping=False,
        )
        before = network.fit(x, y).decision_function(x)
        network.partial_fit(more_x, more_y)
        scores.append(network.decision_function(x))
    assert np.array_equal(scores[0], scores[1]) and not np.array_equal(scores[0], before)
    assert np.corrcoef(scores[0], before)[0, 1] > 0.9, "partial_fit must not restart"


def test_inconsistent_calls_are_refused():
    ((x, y),) = parts(1)
    with pytest.raises(BadInput, match="must list all labels"):
        TwoLayerClassifier(**OPTIONS).partial_fit(x, y)
    network = TwoLayerClassifier(**OPTIONS).partial_fit(x[:1], y[:1], classes=[0, 1])
    with pytest.raises(BadInput, match="are not in"):
        network.partial_fit(x, y + 5)
    with pytest.raises(BadInput, match=r"classes must be \[0, 1\] as in the first call"):
        network.partial_fit(x, y, classes=[0, 1, 2])
    with pytest.raises(BadInput, match="1 targets as in the first call, got 2"):
        TwoLayerRegressor(**OPTIONS).partial_fit(x, x[:, 0]).partial_fit(x, x[:, :2])
