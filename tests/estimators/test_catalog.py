"""Audits, rankings and benchmarks use the same definition of each method."""

import json
from pathlib import Path

import pytest

from unlazy.estimators.catalog import AUDIT, GROUPS, METHODS, RANKING
from unlazy.learners.catalog import LEARNERS

RESULTS = Path(__file__).parents[2] / "results" / "tables"


def test_benchmarks_and_audits_use_the_same_class_for_a_method():
    for learner in ("random-forest", "gradient-boosting"):
        method = METHODS[learner.replace("-", " ")]
        for kind, made in (("classification", "estimator"), ("regression", "regressor")):
            classes = {type(each) for each in (*method.settings(kind, 3), method.default(kind))}
            assert classes == {type(getattr(LEARNERS[learner].value, made))}


def test_results_on_file_name_methods_of_the_catalog():
    assert set(json.loads((RESULTS / "uci.json").read_text())["accuracies"]) <= set(RANKING)
    for path in RESULTS.glob("audit-*.json"):
        assert set(json.loads(path.read_text())["contenders"]) <= set(AUDIT)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_group_and_estimators_for_both_kinds(name):
    method = METHODS[name]
    assert method.group in GROUPS
    for kind in ("classification", "regression"):
        assert hasattr(method.default(kind), "predict")
        assert 1 <= len(method.settings(kind, 7)) <= 4
