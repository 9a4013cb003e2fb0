"""The learners that solve on the host, against scikit-learn and against each other."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from selection import slow_but_first
from toys import Halfspace, small_init
from unlazy.core.errors import BadInput
from unlazy.kernels.feature_maps import RandomFeatures, RandomGradients, RawFeatures
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Linear
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NTK
from unlazy.lab.registry import family_of
from unlazy.learners.base import keys_of
from unlazy.learners.direction import DirectionHistogram
from unlazy.learners.features import FeatureRidge, LogisticRegression
from unlazy.learners.holdout import HoldOut
from unlazy.learners.kernel import KernelRidge, KernelSVM, TangentFeatures
from unlazy.learners.path import drawn
from unlazy.learners.rfm import RecursiveFeatureMachine
from unlazy.networks.inits import TangentInit
from unlazy.solvers.gradient_outer_product import recursive_fits
from unlazy.solvers.policy import FACTORED_POINTS
from unlazy.solvers.ridge import double_gram, fit_gram

KEY = jax.random.key(7)
TASK = Halfspace(5).task(key=jax.random.key(1))
HIDDEN = family_of("shi2022/task", ["d=30", "D=12", "k=3"]).task(key=jax.random.key(1))


def inputs(task, n, seed=2):
    return task.sample(n, key=jax.random.key(seed))


def scaled(task, n):
    _, x, norm, y = drawn(task.sampler, n, KEY)
    return x.astype(np.float64), norm, y


def test_all_learners_get_the_same_sample():
    sample = HIDDEN.sampler.draw(40, keys_of(KEY)[1])
    for learner in (KernelRidge(RBF(1.0)), FeatureRidge(RawFeatures()), DirectionHistogram("mean")):
        seen = learner.fit(HIDDEN.sampler, 40, key=KEY).seen
        np.testing.assert_array_equal(seen.x, sample.x)
        np.testing.assert_array_equal(seen.y, sample.y)


@pytest.mark.parametrize("task", [TASK, HIDDEN], ids=["no basis", "in a basis"])
@pytest.mark.parametrize("n", slow_but_first([60, FACTORED_POINTS + 20]))
def test_kernel_ridge_is_scikit_learns(task, n):
    path = (0.01, 1.0, 30.0)
    trace = KernelRidge(RBF(0.7), path).fit(task.sampler, n, key=KEY)
    assert trace.steps == (0, 1, 2)
    x, norm, y = scaled(task, n)
    z = np.asarray(inputs(task, 50).x, np.float64)
    for index, ridge in enumerate(path):
        peer = PeerRidge(alpha=ridge, kernel="rbf", gamma=0.7).fit(x, y - y.mean())
        np.testing.assert_allclose(
            trace.at(index)(jnp.asarray(z, jnp.float32)),
            peer.predict(z / norm) + y.mean(),
            atol=2e-4,
        )
        loss = np.mean(0.5 * np.square(peer.predict(x) + y.mean() - y))
        assert float(trace.losses[index]) == pytest.approx(loss, rel=1e-3, abs=1e-6)
    np.testing.assert_allclose(trace.models.scores(z)[1], trace.at(1)(z), atol=1e-6)


def test_a_kernel_that_is_never_stored_gives_the_same_path():
    stored = KernelRidge(Laplace(0.5), (0.1, 10.0)).fit(TASK.sampler, FACTORED_POINTS + 20, key=KEY)
    recomputed = KernelRidge(Laplace(0.5), (0.1, 10.0), memory=1).fit(
        TASK.sampler, FACTORED_POINTS + 20, key=KEY
    )
    np.testing.assert_allclose(
        recomputed.models.coefficients,
        stored.models.coefficients,
        atol=2e-3 * np.abs(stored.models.coefficients).max(),
    )


def test_a_ridge_below_single_precision_is_solved_in_double():
    n = FACTORED_POINTS + 30
    trace = KernelRidge(RBF(0.5), (1e-7,)).fit(TASK.sampler, n, key=KEY)
    x, _, y = scaled(TASK, n)
    with jax.enable_x64(True):
        K = np.asarray(gram(RBF(0.5), x))
    fitted = K @ trace.models.coefficients[0] + y.mean()
    peer = PeerRidge(alpha=1e-7, kernel="precomputed").fit(K, y - y.mean())
    np.testing.assert_allclose(fitted, peer.predict(K) + y.mean(), atol=1e-3)


def test_kernels_of_wide_networks_get_inputs_of_norm_root_d():
    trace = KernelRidge(NTK(1, "relu", 1.0, 0.5), (1.0,)).fit(TASK.sampler, 30, key=KEY)
    assert np.mean(np.sum(trace.models.points**2, axis=1)) == pytest.approx(5.0, rel=1e-5)


def test_linear_models_agree_with_each_other_and_with_scikit_learn():
    n, penalty = 200, 0.3
    trace = FeatureRidge(RawFeatures(), (penalty,)).fit(TASK.sampler, n, key=KEY)
    x, norm, y = scaled(TASK, n)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    peer = Ridge(alpha=penalty * 5).fit((x - mean) / spread, y)
    z = np.asarray(inputs(TASK, 40).x)
    np.testing.assert_allclose(trace.at(0)(z), peer.predict((z / norm - mean) / spread), atol=1e-4)
    # The kernel is a linear model of centered labels without intercept.
    kernel = KernelRidge(Linear(), (0.3,)).fit(TASK.sampler, n, key=KEY)
    weights = kernel.models.points.T @ kernel.models.coefficients[0]
    diagonal = np.mean(np.sum(x**2, axis=1))
    np.testing.assert_allclose(
        weights,
        Ridge(alpha=0.3 * diagonal, fit_intercept=False).fit(x, y - y.mean()).coef_,
        atol=1e-4,
    )


def test_features_of_any_distribution_work_with_ridge_regression():
    trace = FeatureRidge(RandomGradients("tanh", 20), (0.1,)).fit(TASK.sampler, 300, key=KEY)
    test = inputs(TASK, 500)
    assert trace.models.weights.shape == (1, 20 * 7)
    assert np.mean(np.sign(trace.at(0)(test.x)) == test.y) > 0.9


def test_more_features_than_examples_are_solved_in_the_dual():
    wide, narrow = (
        FeatureRidge(RandomFeatures("relu", 60), (0.5,)).fit(TASK.sampler, n, key=KEY)
        for n in (50, 70)
    )
    for trace in (wide, narrow):
        model, x = trace.models, np.asarray(trace.seen.x)
        phi = np.asarray(model.features(x * np.float32(model.scale)), np.float64)
        mean, spread = phi.mean(axis=0), np.maximum(phi.std(axis=0), 1e-6)
        y = np.asarray(trace.seen.y)
        peer = Ridge(alpha=0.5 * 60).fit((phi - mean) / spread, y)
        np.testing.assert_allclose(trace.at(0)(x), peer.predict((phi - mean) / spread), atol=1e-3)


def test_a_feature_that_is_constant_on_the_sample_gets_no_weight():
    trace = FeatureRidge(RandomFeatures("truncated_relu", 400, 30.0), (1e-3,)).fit(
        TASK.sampler, 8, key=KEY
    )
    dead = (
        np.std(
            trace.models.features(np.asarray(trace.seen.x) * np.float32(trace.models.scale)), axis=0
        )
        == 0
    )
    assert (
        dead.any()
        and np.all(trace.models.weights[0][dead] == 0)
        and np.all(np.isfinite(trace.models.weights))
    )


def test_logistic_regression_is_scikit_learns():
    trace = LogisticRegression(RawFeatures(), (0.1, 10.0)).fit(TASK.sampler, 150, key=KEY)
    x, norm, y = scaled(TASK, 150)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    z = np.asarray(inputs(TASK, 40).x)
    for index, penalty in enumerate((0.1, 10.0)):
        peer = PeerLogistic(C=1 / (5 * penalty), tol=1e-8, max_iter=1000).fit(
            (x - mean) / spread, y
        )
        np.testing.assert_allclose(
            trace.at(index)(z), peer.decision_function((z / norm - mean) / spread), atol=1e-2
        )


def test_the_support_vector_machine_is_scikit_learns():
    trace = KernelSVM(RBF(0.7), (0.5, 20.0)).fit(TASK.sampler, 120, key=KEY)
    x, norm, y = scaled(TASK, 120)
    z = np.asarray(inputs(TASK, 40).x)
    for index, penalty in enumerate((0.5, 20.0)):
        peer = SVC(C=penalty, gamma=0.7).fit(x, y)
        np.testing.assert_allclose(trace.at(index)(z), peer.decision_function(z / norm), atol=2e-2)


@pytest.mark.parametrize("learner", [KernelSVM(RBF(1.0)), LogisticRegression(RawFeatures())])
def test_one_class_is_refused(learner):
    one_class = Halfspace(5).task(key=jax.random.key(1))
    sampler = dataclasses.replace(
        one_class.sampler, draw=lambda n, key: one_class.draw(n, key)._replace(y=jnp.ones(n))
    )
    with pytest.raises(BadInput, match="both classes"):
        learner.fit(sampler, 20, key=KEY)


def test_tangent_features_are_the_features_of_the_linearized_network():
    """Ridge regression on the kernel of the derivatives equals ridge regression on the derivatives
    themselves.
    """
    init, n = small_init(), 50
    trace = KernelRidge(TangentFeatures(init), (0.1,)).fit(TASK.sampler, n, key=KEY)
    x, norm, y = scaled(TASK, n)
    model = TangentInit(init)(5, key=keys_of(KEY)[0])

    def features(points):
        def score(groups, point):
            return model.put(groups)(point[None])[0]

        groups = model.get(("w", "b", "a", "c"))
        found = jax.vmap(jax.grad(score), (None, 0))(groups, jnp.asarray(points, jnp.float32))
        return np.concatenate(
            [
                np.asarray(leaf, np.float64).reshape(len(points), -1)
                for leaf in jax.tree.leaves(found)
            ],
            axis=1,
        )

    phi = features(x)
    ridge = 0.1 * np.mean(np.sum(phi**2, axis=1))
    peer = Ridge(alpha=ridge, fit_intercept=False).fit(phi, y - y.mean())
    z = np.asarray(inputs(TASK, 30).x)
    np.testing.assert_allclose(
        trace.at(0)(z), peer.predict(features(z / norm)) + y.mean(), atol=2e-3
    )


def test_a_histogram_learns_a_hidden_parity_along_one_direction():
    """A linear model cannot: the label oscillates along the direction."""
    test = inputs(HIDDEN, 4000, seed=9)
    for direction in ("mean", "principal"):
        trace = DirectionHistogram(direction, (20,)).fit(HIDDEN.sampler, 4000, key=KEY)
        score = np.asarray(trace.at(0)(test.x))
        assert np.mean(np.sign(score) == test.y) > 0.9
    linear = FeatureRidge(RawFeatures()).fit(HIDDEN.sampler, 4000, key=KEY).at(0)(test.x)
    assert np.mean(np.sign(linear) == test.y) < 0.85


def test_a_histogram_is_its_table():
    trace = DirectionHistogram("mean", (1, 4)).fit(TASK.sampler, 400, key=KEY)
    x, y = np.asarray(trace.seen.x, np.float64), np.asarray(trace.seen.y)
    place = x @ (x.T @ y / 400)
    low, high = np.quantile(place, [0.001, 0.999])
    quarter = np.searchsorted(low + (high - low) * np.array([0.25, 0.5, 0.75]), place)
    expected = np.array([y[quarter == q].sum() / ((quarter == q).sum() + 2) for q in range(4)])
    np.testing.assert_allclose(trace.at(1)(x), expected[quarter], atol=1e-6)
    np.testing.assert_allclose(trace.at(0)(x), y.sum() / 402, atol=1e-6)


def test_holding_out_scores_on_examples_that_were_not_given():
    learner = KernelRidge(RBF(1.0), (1e-3, 1.0))
    trace = HoldOut.of(learner, 0.25).fit(HIDDEN.sampler, 80, key=KEY)
    sample = HIDDEN.sampler.draw(80, keys_of(KEY)[1])
    np.testing.assert_array_equal(trace.seen.x, sample.x[:60])
    x, y = sample.x[60:] @ HIDDEN.basis, sample.y[60:]
    for index in range(2):
        right = 100 * float(np.mean(np.sign(trace.at(index)(x)) == y))
        assert float(trace.notes["validation_accuracy"][index]) == pytest.approx(right, abs=1e-3)
    with pytest.raises(BadInput, match=r"use `HoldOut\.of`"):
        HoldOut(KernelRidge(RBF(1.0), precision=64))


@pytest.mark.parametrize("values", [(), (0.0,), (1.0, float("nan")), (-1.0,)])
def test_paths_are_positive(values):
    for make in (
        lambda: KernelRidge(Linear(), values),
        lambda: FeatureRidge(RawFeatures(), values),
    ):
        with pytest.raises(BadInput, match="A path must be one or more finite values"):
            make()


def test_a_kernel_without_neighbors_uses_the_budget_for_its_path():
    assert [len(learner.ridges) for learner in KernelRidge(Linear()).tuning(12)] == [12]
    assert [
        len(learner.ridges) for learner in KernelRidge(TangentFeatures(small_init())).tuning(12)
    ] == [12]
    assert [learner.kernel for learner in KernelRidge(RBF(1.0)).tuning(12)] == [RBF(1.0), RBF(0.25)]


def test_a_recursive_feature_machine_without_iterations_is_its_kernel():
    plain = KernelRidge(Laplace(0.5), (0.3,)).fit(TASK.sampler, 90, key=KEY)
    machine = RecursiveFeatureMachine(Laplace(0.5), 0.3, (0, 2)).fit(TASK.sampler, 90, key=KEY)
    z = np.asarray(inputs(TASK, 40).x)
    np.testing.assert_allclose(machine.at(0)(z), plain.at(0)(z), atol=2e-3)
    assert machine.steps == (0, 1) and not np.allclose(
        machine.at(1)(z), machine.at(0)(z), atol=1e-2
    )
    np.testing.assert_allclose(machine.models.scores(z)[1], machine.at(1)(z), atol=1e-6)
    last = RecursiveFeatureMachine(Laplace(0.5), 0.3, (2,)).fit(TASK.sampler, 90, key=KEY)
    np.testing.assert_allclose(last.at(0)(z), machine.at(1)(z), atol=1e-4)


def test_a_recursive_feature_machine_is_that_of_the_library_and_finds_the_direction():
    trace = RecursiveFeatureMachine(Laplace(0.5), 0.3, (0, 3)).fit(TASK.sampler, 300, key=KEY)
    x, _, y = scaled(TASK, 300)
    kernel = Laplace(0.5)
    fits = list(
        recursive_fits(
            kernel,
            x,
            lambda points: fit_gram(
                double_gram(kernel, points), y - y.mean(), 0.3, intercept=False
            ),
            3,
        )
    )
    np.testing.assert_allclose(trace.models.roots[1], fits[3].root, atol=2e-2)
    top = np.linalg.eigh(trace.models.roots[1])[1][:, -1]
    assert abs(top @ np.asarray(TASK.u)) > 0.95


@pytest.mark.parametrize(
    "change", [{"iterations": ()}, {"iterations": (2, 1)}, {"iterations": (-1,)}, {"ridge": 0.0}]
)
def test_a_recursive_feature_machine_refuses_invalid_parameters(change):
    with pytest.raises(BadInput, match="must"):
        RecursiveFeatureMachine(**change)
