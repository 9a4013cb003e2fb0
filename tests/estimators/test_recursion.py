"""Recursive feature machines: the learned metric and the selection of the iteration."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from unlazy import estimators as e
from unlazy.estimators import recursion

DRAW = np.random.default_rng(0)


def test_recursive_feature_machine_without_iterations_is_its_kernel():
    x, y = (part[:200] for part in load_diabetes(return_X_y=True))
    x = x / x.std(axis=0)
    plain = e.KernelRidgeRegressor(kernel="laplace").fit(x, y)
    none = e.RecursiveFeatureMachineRegressor(iterations=0).fit(x, y)
    np.testing.assert_allclose(none.predict(x), plain.predict(x), rtol=1e-6)
    assert none.ridge_ == pytest.approx(plain.ridge_)
    np.testing.assert_array_equal(none.metric_, np.eye(x.shape[1]))


def test_recursive_feature_machine_finds_a_single_index():
    u = np.ones(8) / np.sqrt(8)
    x = DRAW.standard_normal((250, 8))
    machine = e.RecursiveFeatureMachineClassifier().fit(x, np.sin(2 * x @ u) > 0)
    assert abs(np.linalg.eigh(machine.metric_)[1][:, -1] @ u) > 0.98
    assert machine.best_iteration_ > 0 and len(machine.held_out_errors_) == 5


def test_a_metric_from_a_subset_is_used_for_all_samples():
    x = DRAW.standard_normal((500, 6))
    y = np.sin(2 * x[:, 0])
    part = e.RecursiveFeatureMachineRegressor(metric_samples=200, random_state=0).fit(
        x[:400], y[:400]
    )
    assert len(part.X_fit_) == 400 and np.argmax(np.diag(part.metric_)) == 0
    plain = e.KernelRidgeRegressor(kernel="laplace").fit(x[:400], y[:400])
    assert part.score(x[400:], y[400:]) > plain.score(x[400:], y[400:])


def test_a_diagonal_metric_is_diagonal_and_a_centered_one_ignores_a_linear_trend():
    x = DRAW.standard_normal((200, 3))
    diagonal = (
        e.RecursiveFeatureMachineRegressor(diagonal=True, ridge=0.1)
        .fit(x, x[:, 0] * x[:, 1])
        .metric_
    )
    np.testing.assert_array_equal(diagonal, np.diag(np.diag(diagonal)))
    y = 3 * x[:, 2] + np.sin(2 * x[:, 0])
    for center, strongest in ((False, 2), (True, 0)):
        metric = (
            e.RecursiveFeatureMachineRegressor(centered=center, iterations=1, ridge=0.1)
            .fit(x, y)
            .metric_
        )
        assert np.argmax(np.diag(metric)) == strongest


def test_samples_not_used_for_the_metric_select_the_iteration():
    x = DRAW.standard_normal((900, 6))
    y = np.sign(x[:, 0] * x[:, 1])
    machine = e.RecursiveFeatureMachineClassifier(metric_samples=400, random_state=0).fit(x, y)
    errors = machine.held_out_errors_
    assert len(errors) == 5 and machine.best_iteration_ == np.argmin(errors) > 0
    # Computed directly: a fit to the samples of the metric, errors on the others.
    order = np.random.RandomState(0).permutation(900)
    some, rest = np.sort(order[:400]), order[400:]
    plain = e.KernelRidgeClassifier(kernel="laplace").fit(x[some], y[some])
    np.testing.assert_allclose(
        errors[0], np.mean((plain.decision_function(x[rest]) - y[rest]) ** 2), rtol=1e-6
    )
    assert len(machine.X_fit_) == 900


def test_copies_of_the_metrics_samples_are_not_held_out(monkeypatch):
    monkeypatch.setattr(recursion, "MANY", 50)
    x = np.tile(DRAW.standard_normal((120, 3)), (4, 1))
    machine = e.RecursiveFeatureMachineRegressor(metric_samples=300, random_state=0)
    monkeypatch.setattr(type(machine), "_best_on", lambda *_: pytest.fail("a copy was held out"))
    machine.fit(x, np.sin(2 * x[:, 0]))
    assert machine.held_out_errors_ is not None


def test_no_metric_is_selected_on_noise():
    x = DRAW.standard_normal((1500, 5))
    machine = e.RecursiveFeatureMachineRegressor(metric_samples=800, random_state=0).fit(
        x, DRAW.standard_normal(1500)
    )
    assert machine.held_out_errors_.min() > 0.9 and np.std(machine.predict(x)) < 0.3
