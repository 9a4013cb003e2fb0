"""Benchmarks on every kind of outputs: metric, best learner, and plausible numbers."""

import json

import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from toys import Blobs, Products
from unlazy.kernels.feature_maps import RandomFeatures
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.run import run_one
from unlazy.lab.store import Store
from unlazy.learners.adapters import ScikitLearner
from unlazy.learners.catalog import LEARNERS
from unlazy.learners.features import FeatureRidge
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.unit_norm import UnitNorm
from unlazy.networks.inits import AntisymmetricInit
from unlazy.studies.benchmark import Benchmark

#: One learner of each kind in the catalog; features and the network are smaller, to be fast.
NAMES = ("linear", "ntk", "rfm")
DESCENT = Descent(
    {"w": 0.1, "b": 0.1, "a": 0.1}, steps=400, batch=50, loss="natural", momentum=0.9, drop=0.75
)
SMALL = {
    "relu-features": FeatureRidge(RandomFeatures("relu", 300)),
    "network": UnitNorm.of(
        GradientDescent(
            AntisymmetricInit(m=30, w_scale=1.0, b_scale=0.5, a_scale=0.1, activation="relu"),
            (DESCENT,),
        )
    ),
}
FOREST = ScikitLearner.of(
    RandomForestClassifier(20),
    regressor=RandomForestRegressor(20),
    grid={"min_samples_leaf": [1, 3]},
)


EVERYONE = (*NAMES, *SMALL, "forest")
FEW = ("linear", "ntk", "forest")


def outcome(family, folder, n=300, *, names):
    everyone = {name: LEARNERS[name].value for name in NAMES} | SMALL | {"forest": FOREST}
    learners = {name: everyone[name] for name in names}
    benchmark = Benchmark(family, learners, (n,), (0, 1), budget=2, test=1000)
    with Store(folder / "s.sqlite") as store:
        return run_one(benchmark, store, LocalEngine())


def means(found, n=300):
    return {name: found.mean(name, n).mean for name in found.learners}


@pytest.mark.slow
def test_fifteen_real_outputs(tmp_path):
    """Four outputs are linear, eleven are products: a linear model leaves variance 15 of 19."""
    found = outcome(Products(), tmp_path, names=EVERYONE)
    value = means(found)
    assert found.metric.name == "squared_error" and found.to_json()["metric"] == "squared_error"
    assert 14 < value["linear"] < 17.5 and max(value.values()) < 19.5
    best = min(value, key=value.get)
    assert found.order(300)[0] == best != "linear" and value[best] < 8
    assert f"At n = 300, {best} ({value[best]:.4g} squared error)" in found.conclusion(
        300
    ) and "%" not in found.conclusion(300)
    json.dumps(found.to_json(), allow_nan=False)


def test_one_real_output(tmp_path):
    """y = u₀ + u₀·u₁ has variance 2, of which a linear model explains one half."""
    found = outcome(Products(scalar=True), tmp_path, names=FEW)
    value = means(found)
    assert found.metric.name == "squared_error" and 0.85 < value["linear"] < 1.4
    best = min(value, key=value.get)
    assert found.order(300)[0] == best != "linear" and value[best] < 0.5
    assert all(difference.ahead.mean >= 0 for difference in found.differences(300)[1]), (
        "the best learner has the smallest error"
    )


@pytest.mark.parametrize(
    ("family", "names"),
    [
        pytest.param(Blobs(), FEW, id="vectors"),
        pytest.param(Blobs(), EVERYONE, id="vectors, everyone", marks=pytest.mark.slow),
        # Only networks use the shape of images.
        pytest.param(
            Blobs(side=4), ("linear", "network", "forest"), id="images", marks=pytest.mark.slow
        ),
    ],
)
def test_ten_classes(family, names, tmp_path):
    found = outcome(family, tmp_path, names=names)
    value = means(found)
    assert found.metric.name == "accuracy" and all(85 < each <= 100 for each in value.values())
    best = max(value, key=value.get)
    conclusion = found.conclusion(300)  # which may name a tie
    assert found.order(300)[0] == best and best in conclusion
    assert f"{value[best]:.2f} %" in conclusion
    chosen = next(result for place, result in found.results.items() if place.learner == "forest")
    assert chosen.chosen.keys() == {"min_samples_leaf"} and chosen.tried == 2
