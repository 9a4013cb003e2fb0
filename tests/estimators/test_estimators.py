"""Estimators against reference solutions, on small real tables, and on invalid input."""

import warnings

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from selection import slow_but_first
from unlazy import estimators as e
from unlazy.core.errors import BadInput
from unlazy.kernels.catalog import KERNELS
from unlazy.kernels.finite import Tangent
from unlazy.kernels.gram import gram
from unlazy.kernels.products import ArcCosine
from unlazy.kernels.residual import ResidualNTK
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NNGP, NTK
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import AntisymmetricInit, TangentInit
from unlazy.tasks.base import Batch, Sampler

DRAW = np.random.default_rng(0)
NET = {
    "width": 32,
    "min_steps": 200,
    "max_steps": 200,
    "learning_rate": 0.01,
    "weight_decay": 1e-2,
    "early_stopping": False,
    "ensemble": 1,
    "random_state": 0,
}


def table(load):
    x, y = load(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(x))[:200]
    return StandardScaler().fit_transform(x[order]), y[order]


# Oracles


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_kernel_is_scikit_learns_ridge(fit_intercept):
    """The intercept is not penalized, as in `Ridge`; scikit-learn's `KernelRidge` has none."""
    x, y = table(load_diabetes)
    weight = DRAW.uniform(0.5, 2, len(x))
    ours = e.KernelRidgeRegressor(kernel="linear", ridge=3.0, fit_intercept=fit_intercept).fit(
        x, y, weight
    )
    peer = Ridge(alpha=3.0, fit_intercept=fit_intercept).fit(x, y, weight)
    np.testing.assert_allclose(ours.predict(x), peer.predict(x), rtol=1e-8)
    if not fit_intercept:
        kernel = KernelRidge(alpha=3.0, kernel="linear").fit(x, y, weight)
        np.testing.assert_allclose(ours.predict(x), kernel.predict(x), rtol=1e-7)


@pytest.mark.parametrize("name", ["polynomial", "rbf"])
def test_named_kernels_are_those_of_scikit_learn(name):
    x, y = table(load_diabetes)
    peer = KernelRidge(
        alpha=0.5,
        kernel="poly" if name == "polynomial" else name,
        gamma=1.0 if name == "polynomial" else 0.1,
    )
    ours = e.KernelRidgeRegressor(kernel=name, gamma=0.1, ridge=0.5, fit_intercept=False)
    np.testing.assert_allclose(ours.fit(x, y).predict(x), peer.fit(x, y).predict(x), rtol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_named_kernels_are_those_of_the_catalog(name):
    """Except for the bandwidth, which depends on the number of columns."""
    x, y = table(load_diabetes)
    kernel = {"rbf": RBF(0.1), "laplace": Laplace(0.1**0.5)}.get(name, KERNELS[name].value)
    assert e.KernelRidgeRegressor(kernel=name).fit(x, y).kernel_ == kernel
    given = (
        e.KernelRidgeRegressor(kernel=name, gamma=0.3, b_variance=0.5, degree=5).fit(x, y).kernel_
    )
    assert (given != kernel) == (
        name in ("rbf", "laplace", "arcsine", "nngp", "ntk", "polynomial", "quadratic")
    )


def test_the_ntk_by_name_equals_the_ntk_estimator():
    x, y = table(load_iris)
    own, named = e.NTKClassifier().fit(x, y), e.KernelRidgeClassifier(kernel="ntk").fit(x, y)
    np.testing.assert_array_equal(own.decision_function(x), named.decision_function(x))


def test_hinge_is_the_support_vector_machine():
    x, y = table(load_wine)
    ours = e.KernelRidgeClassifier(kernel="rbf", gamma=0.1, loss="hinge", C=2.0).fit(
        x[:120], y[:120]
    )
    peer = OneVsRestClassifier(SVC(C=2.0, gamma=0.1)).fit(x[:120], y[:120])
    np.testing.assert_allclose(ours.decision_function(x), peer.decision_function(x), atol=1e-2)
    binary = e.NTKClassifier(loss="hinge").fit(x, y == 1)
    assert binary.decision_function(x).shape == (len(x),) and binary.score(x, y == 1) > 0.95


@pytest.mark.parametrize(
    ("kind", "limit"),
    slow_but_first(
        [
            ("relu", NNGP(1, "relu", 1.5, 0.3)),
            ("tangent", NTK(1, "relu", 1.5, 0.3)),
            ("fourier", RBF(0.75)),
            ("truncated_relu", NNGP(1, "truncated_relu", 1.5, 0.3)),
            ("hard_tanh", NNGP(1, "hard_tanh", 1.5, 0.3)),
        ],
        3,
    ),
)
def test_random_features_approach_their_kernel(kind, limit):
    """Features have the scale of the kernel, without the last bias, which is an intercept."""
    x = DRAW.standard_normal((6, 3))
    with jax.enable_x64(True):
        K = np.asarray(gram(limit, x)) - (0.0 if kind == "fourier" else 0.3)
    errors = []
    for width in (500, 20_000):
        machine = e.RandomFeatureRegressor(
            features=kind, width=width, w_variance=1.5, b_variance=0.3, gamma=0.75, random_state=0
        )
        phi = machine.fit(x, x[:, 0])._transform(x)
        errors.append(np.max(np.abs(phi @ phi.T - K)) / np.max(K))
    assert errors[1] < 0.05 and errors[1] < errors[0]


def test_random_feature_regression_approaches_kernel_regression():
    x, y = table(load_diabetes)
    options = {"ridge": 2.0, "w_variance": 2.0, "b_variance": 0.1}
    kernel = e.ConjugateKernelRegressor(**options).fit(x, y).predict(x)
    gaps = [
        np.std(
            e.RandomFeatureRegressor(width=m, random_state=0, **options).fit(x, y).predict(x)
            - kernel
        )
        / np.std(kernel)
        for m in (50, 3000)
    ]
    assert gaps[1] < 0.05 and gaps[1] < gaps[0] / 3


@pytest.mark.slow
def test_gradient_flow_of_the_linearized_network_is_tangent_kernel_regression():
    """Many small steps from zero interpolate as the kernel of the same finite network does, without
    ridge and intercept.
    """
    with jax.enable_x64(True):
        x, y, z = (
            DRAW.standard_normal((8, 3)),
            DRAW.standard_normal(8),
            DRAW.standard_normal((5, 3)),
        )
        init = AntisymmetricInit(m=40, w_scale=1.0, b_scale=0.5, a_scale=1.0, activation="relu")
        stage = Descent(dict.fromkeys("wbac", 0.01), steps=20_000, loss="squared")
        sampler = Sampler(lambda n, key: Batch(jax.numpy.asarray(x), jax.numpy.asarray(y)), 3)
        learner = GradientDescent(TangentInit(init), (stage,))
        model = jax.jit(lambda key: learner.fit(sampler, 8, key=key))(jax.random.key(0)).at(-1)
        network = init(3, key=jax.random.split(jax.random.key(0), 3)[0])
        machine = e.KernelRidgeRegressor(
            kernel=Tangent(network), ridge=1e-10, fit_intercept=False
        ).fit(x, y)
        np.testing.assert_allclose(model(z), machine.predict(z), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conjugate_gradients_find_the_exact_solution(weighted, fit_intercept):
    x, y = table(load_iris)
    weight = DRAW.uniform(0.5, 2, len(x)) if weighted else None
    exact = e.NTKClassifier(ridge=0.1, solver="exact", fit_intercept=fit_intercept).fit(
        x, y, weight
    )
    iterated = e.NTKClassifier(ridge=0.1, solver="cg", fit_intercept=fit_intercept).fit(
        x, y, weight
    )
    assert iterated.solver_ == "cg" and exact.solver_ == "exact"
    np.testing.assert_allclose(iterated.decision_function(x), exact.decision_function(x), atol=2e-3)


def test_a_committee_is_the_mean_of_its_members():
    x, y = table(load_iris)
    machine = e.KernelCommitteeClassifier(kernels=["rbf", NTK(1, "relu", 2.0, 0.1)]).fit(x, y)
    both = e.KernelRidgeClassifier().fit(x, y).decision_function(x) + e.NTKClassifier().fit(
        x, y
    ).decision_function(x)
    np.testing.assert_allclose(machine.decision_function(x), both / 2, atol=1e-10)
    assert len(machine.members_) == 2


# Real tables


@pytest.mark.parametrize(
    "machine",
    [
        e.NTKClassifier(),
        e.ConjugateKernelClassifier(depth=2),
        e.KernelRidgeClassifier(kernel="laplace"),
        e.KernelRidgeClassifier(kernel="arcsine", b_variance=1.0, loss="hinge"),
        e.RandomFeatureClassifier(features="fourier", width=200, random_state=0),
        e.RandomFeatureClassifier(features="tangent", width=30, random_state=0),
        e.RecursiveFeatureMachineClassifier(iterations=2),
        e.TwoLayerClassifier(**NET),
        e.TwoLayerClassifier(**NET | {"activation": "tanh"}),
        e.ThreeLayerResNetClassifier(**NET),
    ],
    ids=lambda machine: type(machine).__name__,
)
@pytest.mark.parametrize(
    ("load", "min_score"),
    slow_but_first([(load_iris, 0.9), (load_wine, 0.92), (load_breast_cancer, 0.9)]),
)
def test_classifiers_on_real_tables(machine, load, min_score):
    x, y = table(load)
    assert cross_val_score(machine, x, y, cv=2).mean() > min_score


@pytest.mark.parametrize(
    "machine",
    [
        e.NTKRegressor(),
        e.KernelRidgeRegressor(kernel=ResidualNTK(b_variance=0.1)),
        e.RandomFeatureRegressor(random_state=0),
        e.RecursiveFeatureMachineRegressor(iterations=2),
        e.TwoLayerRegressor(**NET | {"weight_decay": 1e-2}),
        e.ThreeLayerResNetRegressor(**NET | {"weight_decay": 1e-2}),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_regressors_on_a_real_table_with_two_outputs(machine):
    x, y = table(load_diabetes)
    both = np.column_stack([y, x[:, 0] ** 2 - x[:, 1]])
    fitted = clone(machine).fit(x[:150], both[:150])
    found = fitted.predict(x[150:])
    assert found.shape == (50, 2) and fitted.n_outputs_ == 2
    assert np.all(r2_score(both[150:], found, multioutput="raw_values") > 0.25)


def test_pipeline_grid_search_and_data_frames():
    pandas = pytest.importorskip("pandas")
    x, y = load_wine(return_X_y=True)
    frame = pandas.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])])
    labels = pandas.Series(np.array(["red", "rosé", "white"])[y])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), e.NTKClassifier()), {"ntkclassifier__depth": [1, 2]}, cv=2
    )
    search.fit(frame, labels)
    assert search.best_score_ > 0.95
    assert set(search.predict(frame)) == {"red", "rosé", "white"}
    assert list(e.KernelRidgeClassifier().fit(frame, labels).feature_names_in_) == list(
        frame.columns
    )


def test_kernel_objects_survive_cloning_and_search():
    x, y = table(load_iris)
    search = GridSearchCV(
        e.KernelRidgeClassifier(), {"kernel": ["linear", Laplace(0.5), ArcCosine(1)]}, cv=2
    ).fit(x, y)
    assert search.best_score_ > 0.8


def test_probabilities_are_calibrated_as_trained():
    """Labels with P(y = 1) = 0.8, independent of x, are predicted with that probability."""
    x = DRAW.standard_normal((600, 2))
    y = DRAW.random(600) < 0.8
    machine = e.TwoLayerClassifier(**NET | {"weight_decay": 0.1}).fit(x, y)
    assert machine.predict_proba(x)[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)
    assert not hasattr(e.NTKClassifier(), "predict_proba"), "ridge scores are no probabilities"


def test_weights_of_networks_move_the_fit():
    """If each input has labels 0 and 1, the prediction is their weighted mean."""
    x = np.repeat(DRAW.standard_normal((60, 2)), 2, axis=0)
    y = np.tile([0.0, 1.0], 60)
    weight = np.tile([1.0, 3.0], 60)
    for machine in (e.TwoLayerRegressor(**NET), e.ThreeLayerResNetRegressor(**NET)):
        assert machine.fit(x, y, sample_weight=weight).predict(x).mean() == pytest.approx(
            0.75, abs=0.02
        )


def test_the_network_has_as_many_outputs_as_there_are_targets():
    x, y = table(load_diabetes)
    one = e.TwoLayerRegressor(**NET).fit(x, y)
    assert one.networks_[0].a.shape == (32, 1) and one.predict(x).shape == (200,)
    three = e.TwoLayerClassifier(**NET).fit(*table(load_iris))
    assert three.networks_[0].a.shape == (32, 3)


def test_hidden_training_leaves_the_last_layer():
    x, y = table(load_iris)
    machine = e.ThreeLayerResNetClassifier(**NET | {"trained": "hidden"}).fit(x, y)
    again = clone(machine).set_params(learning_rate=1e-9).fit(x, y)
    np.testing.assert_array_equal(machine.networks_[0].a, again.networks_[0].a)
    assert np.max(np.abs(machine.networks_[0].w - again.networks_[0].w)) > 0.01
    np.testing.assert_allclose(
        machine.networks_[0]((x - machine.mean_) / machine.scale_),
        machine.decision_function(x),
        rtol=1e-4,
        atol=1e-5,
    )


# Wrong and awkward input


KINDS = [getattr(e, name) for name in e.__all__]
QUICK = {kind: NET if issubclass(kind, e.network.NetworkMachine) else {} for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns_and_duplicated_samples(kind):
    x = np.column_stack([np.repeat(DRAW.standard_normal((20, 2)), 2, axis=0), np.full(40, 1e6)])
    y = (x[:, 0] > 0).astype(float)
    machine = kind(**QUICK[kind]).fit(x, y)
    scores = machine.predict(x)
    assert np.all(np.isfinite(scores))
    if (
        kind not in (e.NTKClassifier, e.NTKRegressor)
        and "Conjugate" not in kind.__name__
        and "RandomFeature" not in kind.__name__
    ):
        # These depend on the norm of an input, which the constant column dominates.
        assert machine.score(x, y) > 0.6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(kind, bad):
    x, y = np.ones((6, 2)), np.array([0, 1] * 3)
    x[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        kind(**QUICK[kind]).fit(x, y)


@pytest.mark.parametrize("kind", KINDS)
def test_values_out_of_range_are_refused_or_give_finite_predictions(kind):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    with pytest.raises(ValueError, match=r"X has values up to .* at most 1e.75 is supported"):
        kind(**QUICK[kind]).fit(X * 1e160, y)
    for scale in (1e70, 1e-70):
        machine = kind(**QUICK[kind]).fit(X * scale, y)
        assert np.isfinite(machine.predict(X * scale)).all()
        with pytest.raises(ValueError, match=r"at most 1e.75"):
            machine.predict(X * 1e160)
    if kind.__name__.endswith("Regressor"):
        with pytest.raises(ValueError, match="y has values up to"):
            kind(**QUICK[kind]).fit(X, y * 1e200)
        assert np.isfinite(kind(**QUICK[kind]).fit(X, y * 1e70).predict(X)).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.__name__.endswith("Classifier")])
def test_one_class_is_refused(kind):
    with pytest.raises(BadInput, match="at least 2 classes, got only class"):
        kind().fit(np.ones((4, 2)), ["a"] * 4)
    with pytest.raises(ValueError, match="1d array"):
        kind().fit(np.ones((4, 2)), np.ones((4, 2)))


def test_float32_inputs_are_fitted_in_double_precision():
    """Near-duplicates make this Gram matrix indefinite in single precision; the fit is that of
    double precision.
    """
    x = (
        np.repeat(DRAW.standard_normal((40, 2)), 3, axis=0) + 1e-4 * DRAW.standard_normal((120, 2))
    ).astype(np.float32)
    y = np.sin(x[:, 0])
    assert np.linalg.eigvalsh(np.asarray(gram(RBF(0.5), x), np.float64))[0] < -1e-7
    single = e.KernelRidgeRegressor(gamma=0.5, ridge=1e-9).fit(x, y)
    double = e.KernelRidgeRegressor(gamma=0.5, ridge=1e-9).fit(x.astype(np.float64), y)
    np.testing.assert_allclose(single.predict(x), double.predict(x), rtol=1e-6)
    assert np.max(np.abs(single.predict(x) - y)) < 1e-3


def test_too_many_samples_report_required_memory_and_alternatives():
    x, y = table(load_iris)
    with pytest.raises(
        BadInput,
        match=r"150 samples needs 0.00108 GB of memory; the limit is 0.0001 GB. solver='cg'",
    ):
        e.NTKClassifier(memory=1e5, solver="exact").fit(x, y)
    with pytest.raises(BadInput, match="loss='ridge' with solver='cg'"):
        e.NTKClassifier(memory=1e5, loss="hinge").fit(x, y)
    with pytest.raises(BadInput, match="KernelRidge estimator with solver='cg'"):
        e.RecursiveFeatureMachineRegressor(memory=1e5).fit(x, y)
    with pytest.raises(BadInput, match="Lower the width"):
        e.RandomFeatureRegressor(memory=1e5).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = e.NTKClassifier(memory=1e5).fit(x, y)
    assert machine.solver_ == "cg" and machine.score(x, y) > 0.9


def test_conjugate_gradients_that_do_not_converge_warn():
    x = np.repeat(DRAW.standard_normal((50, 2)), 2, axis=0) + 1e-6 * DRAW.standard_normal((100, 2))
    with pytest.warns(ConvergenceWarning, match="larger ridge"):
        e.KernelRidgeRegressor(solver="cg", ridge=1e-13, kernel="rbf", gamma=0.01).fit(
            x, DRAW.standard_normal(100)
        )


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (e.KernelRidgeRegressor(kernel="rfb"), "Did you mean 'rbf'"),
        (e.KernelRidgeRegressor(ridge="lo"), "Did you mean 'loo'"),
        (e.KernelRidgeRegressor(ridge=-1.0), "ridge must be"),
        (e.KernelRidgeRegressor(solver="exakt"), "Did you mean 'exact'"),
        (e.KernelRidgeRegressor(gamma=-1.0), "gamma must be"),
        (e.KernelRidgeRegressor(ridges=(-1.0, 1.0)), "ridges must be"),
        (e.NTKClassifier(activation="rel"), "Did you mean 'relu'"),
        (e.NTKClassifier(loss="hing"), "Did you mean 'hinge'"),
        (e.NTKClassifier(loss="hinge", C=0.0), "C must be"),
        (e.RandomFeatureRegressor(features="fourie"), "Did you mean 'fourier'"),
        (e.RandomFeatureRegressor(width=0), "width must be"),
        (e.RandomFeatureRegressor(ridge="lo"), "Did you mean 'loo'"),
        (e.RandomFeatureRegressor(w_variance=-1.0), "w_variance must be"),
        (e.RecursiveFeatureMachineRegressor(kernel="linear"), "no kernel named"),
        (e.RecursiveFeatureMachineRegressor(solver="cg"), "no solver named"),
        (e.RecursiveFeatureMachineRegressor(iterations=-1), "iterations must be"),
        (e.TwoLayerRegressor(width=0), "width must be"),
        (e.TwoLayerRegressor(learning_rate=0.0), "learning_rate must be"),
        (e.TwoLayerRegressor(weight_decay=-1.0), "weight_decay must be"),
        (e.TwoLayerRegressor(ensemble=0), "ensemble must be"),
        (e.TwoLayerRegressor(weight_decay="held"), "Did you mean 'held-out'"),
        (e.DeepMLPRegressor(depth=0), "depth must be"),
        (e.RecursiveFeatureMachineRegressor(metric_samples=1), "metric_samples must be"),
        (e.TwoLayerRegressor(trained="last"), "no choice of trained layers"),
        (e.TwoLayerRegressor(activation="tahn"), "Did you mean 'tanh'"),
        (e.TwoLayerRegressor(optimizer="adamw"), "optimizer must be"),
        (
            e.TwoLayerRegressor(**NET | {"optimizer": "sgd", "learning_rate": 1e6}),
            "Training diverged",
        ),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused(machine, message):
    x, y = table(load_iris)
    with pytest.raises(BadInput, match=message):
        machine.fit(x, y)


@pytest.mark.parametrize(
    "weight", [np.ones(3), -np.ones(150), np.full(150, np.nan), np.eye(150)[0]]
)
def test_bad_weights_are_refused(weight):
    x, y = table(load_iris)
    with pytest.raises(BadInput, match="weight"):
        e.NTKRegressor().fit(x, y, sample_weight=weight)
