"""Estimators of scikit-learn as learners, and learners written plainly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from contracts import check_learner
from selection import slow_but_first
from toys import Blobs, Halfspace, Products
from unlazy.core.errors import BadInput
from unlazy.core.metrics import Outputs
from unlazy.lab.registry import family_of
from unlazy.lab.trials import Trial
from unlazy.learners.adapters import HostModel, ScikitLearner
from unlazy.learners.base import PlainLearner, Trace
from unlazy.networks.base import Predictor

KEY = jax.random.key(3)
FAMILIES = {
    "signs": Halfspace(4),
    "classes": Blobs(),
    "reals": Products(),
    "one real": Products(scalar=True),
    "images": Blobs(side=8),
}
ESTIMATORS = {
    "probabilities": RandomForestClassifier(5),
    "decisions": SVC(),
    "labels": Perceptron(),
    "a pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "all outputs at once": RandomForestRegressor(5),
    "one output at a time": GradientBoostingRegressor(n_estimators=3),
}


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_satisfy_the_contract(name, kind):
    learner = ScikitLearner(ESTIMATORS[name])
    if learner.suits(FAMILIES[kind].outputs):
        check_learner(learner, FAMILIES[kind], 80)
    else:
        with pytest.raises(BadInput, match="ScikitLearner cannot learn reals"):
            Trial(FAMILIES[kind], learner, 80, 0, ())


@pytest.mark.parametrize("kind", ["signs", "classes"])
@pytest.mark.parametrize("name", ["probabilities", "decisions", "labels", "a pipeline"])
def test_the_answers_are_the_estimators(name, kind):
    task = FAMILIES[kind].task(key=jax.random.key(0))
    estimator = ESTIMATORS[name]
    trace = ScikitLearner(estimator).fit(task.sampler, 200, key=KEY)
    score = np.asarray(trace.at(0)(task.sample(100, key=jax.random.key(5)).x))
    right = np.asarray(task.sample(100, key=jax.random.key(5)).y)
    good = score * right > 0 if kind == "signs" else score.argmax(axis=1) == right.argmax(axis=1)
    assert np.mean(good) > 0.75


def test_regression_is_scikit_learns_own_in_the_input_space():
    """Also if the sampler returns coordinates."""
    task = family_of("shi2022/task", ["d=30", "D=12", "k=3"]).task(key=jax.random.key(1))
    trace = ScikitLearner(Ridge()).fit(task.sampler, 60, key=KEY)
    x = np.asarray(trace.seen.x @ task.basis)
    peer = Ridge().fit(x, np.asarray(trace.seen.y))
    np.testing.assert_allclose(trace.at(0)(x), peer.predict(x), atol=1e-4)
    np.testing.assert_allclose(
        trace.models.scores(trace.seen.x, task.basis)[0], peer.predict(x), atol=1e-4
    )


def test_the_key_sets_the_random_state():
    task = Halfspace(4).task(key=jax.random.key(0))
    learner = ScikitLearner(make_pipeline(StandardScaler(), RandomForestClassifier(3)))
    x = task.sample(200, key=jax.random.key(5)).x
    one, same = (np.asarray(learner.fit(task.sampler, 50, key=KEY).at(0)(x)) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    assert learner.estimator.steps[-1][1].random_state is None, "the learner itself must not change"


def test_classes_that_were_not_seen_are_never_chosen():
    """Five examples of ten classes, and examples of one class."""
    task = Blobs().task(key=jax.random.key(0))
    for n in (5, 1):
        trace = ScikitLearner(LogisticRegression()).fit(task.sampler, n, key=KEY)
        score = np.asarray(trace.at(0)(task.sample(300, key=jax.random.key(5)).x))
        seen = np.asarray(trace.seen.y).sum(axis=0) > 0
        assert (
            score.shape == (300, 10)
            and np.all(np.isfinite(score))
            and np.all(seen[score.argmax(axis=1)])
        )


def test_tuning_follows_the_grid_within_the_budget():
    learner = ScikitLearner.of(
        SVC(), grid={"C": [0.1, 1.0, 10.0, 100.0], "kernel": ["rbf", "linear"]}
    )
    assert (
        len(learner.tuning(24)) == 8 and len(learner.tuning(3)) == 3 and len(learner.tuning(1)) == 1
    )
    settings = [dict(tried.settings) for tried in learner.tuning(24)]
    assert settings[0] == {"C": 0.1, "kernel": "rbf"} and len({str(each) for each in settings}) == 8
    assert len({tried.settings["C"] for tried in learner.tuning(4)}) > 2, (
        "a small budget must reach over the whole grid"
    )
    bare = ScikitLearner(SVC())
    assert bare.tuning(24) == (bare,) and bare.settings == {}
    pipeline = ScikitLearner.of(make_pipeline(StandardScaler(), SVC()), grid={"svc__C": [1.0, 2.0]})
    assert [tried.estimator.get_params()["svc__C"] for tried in pipeline.tuning(9)] == [1.0, 2.0]


def test_a_regressor_stands_in_on_real_numbers():
    both = ScikitLearner.of(
        RandomForestClassifier(3), regressor=RandomForestRegressor(3), grid={"max_depth": [1, 2]}
    )
    assert both.suits(Outputs("reals", 15)) and not ScikitLearner(RandomForestClassifier()).suits(
        Outputs("reals")
    )
    assert (
        isinstance(both.suited(Products()).estimator, RandomForestRegressor)
        and both.suited(Halfspace(3)) is both
    )
    assert both.suited(Products()).tuning(2)[1].estimator.max_depth == 2


def test_keys_follow_the_settings():
    keys = [Trial(Halfspace(3), ScikitLearner(SVC(C=c)), 30, 0, ()).key for c in (1.0, 1.0, 2.0)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScikitLearner(3), "must be an instance"),
        (lambda: ScikitLearner(SVC), "must be an instance"),
        (lambda: ScikitLearner.of(SVC(), grid={"c": [1.0]}), "SVC has no parameter c"),
        (lambda: ScikitLearner.of(SVC(), grid={"C": []}), "at least one value"),
        (
            lambda: ScikitLearner.of(SVC(), regressor=LinearRegression(), grid={"C": [1.0]}),
            "LinearRegression has no parameter C",
        ),
    ],
)
def test_invalid_estimators_are_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_estimators_without_tags_are_regressors():
    assert ScikitLearner(KMeans(2)).suits(Outputs("reals"))
    check_learner(ScikitLearner(DummyClassifier()), Halfspace(3), 30)


class Nearest(PlainLearner):
    """The label of the nearest mean, on the host."""

    @property
    def on_host(self):
        return True

    def learn(self, x, y, *, key):
        assert isinstance(x, np.ndarray)
        w = x.T @ y / len(x)
        return HostModel(lambda rows: rows @ w)


class Mean(PlainLearner):
    """The same learner, traced."""

    def learn(self, x, y, *, key):
        return Predictor(lambda w, x: x @ w, x.T @ y / len(x))


class NoModel(PlainLearner):
    """Returns a bare function."""

    def learn(self, x, y, *, key):
        return lambda x: x[:, 0]


@pytest.mark.parametrize(
    "family",
    slow_but_first(
        [Halfspace(4), Blobs(), Products(), family_of("shi2022/task", ["d=30", "D=12", "k=3"])], 2
    ),
)
def test_plain_learners_satisfy_the_contract_and_agree(family):
    for learner in (Nearest(), Mean()):
        check_learner(learner, family, 40)
    task = family.task(key=jax.random.key(0))
    one, other = (learner.fit(task.sampler, 40, key=KEY) for learner in (Nearest(), Mean()))
    np.testing.assert_allclose(
        one.models.scores(one.seen.x, task.basis),
        other.models.scores(one.seen.x, task.basis),
        atol=1e-4,
    )


def test_a_plain_learner_must_return_a_model():
    with pytest.raises(
        BadInput,
        match=r"NoModel.learn must return a Model, .*, got function",
    ):
        NoModel().fit(Halfspace(3).task(key=jax.random.key(0)).sampler, 10, key=KEY)


def test_a_trace_of_one_model():
    seen = Halfspace(3).task(key=jax.random.key(0)).draw(10, KEY)
    trace = Trace.of(Predictor(lambda w, x: x @ w, jnp.ones(3)), seen, loss=0.5)
    assert trace.steps == (1,) and float(trace.losses[0]) == 0.5 and bool(trace.finite[0])
    np.testing.assert_allclose(trace.at(0)(seen.x), seen.x.sum(axis=1), rtol=1e-5)
    assert np.isnan(Trace.of(Predictor(lambda w, x: x @ w, jnp.ones(3)), seen).losses[0])
