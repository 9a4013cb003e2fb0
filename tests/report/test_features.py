"""Fixed and learned features in plots."""

from __future__ import annotations

import pytest

from unlazy.core.naming import describe
from unlazy.lab import registry
from unlazy.report.features import feature_group, group_of, told_apart
from unlazy.report.palette import FAMILIES, looks
from unlazy.report.view import ViewSeries


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("linear", "fixed"),
        ("ntk", "fixed"),
        ("relu-features-sgd", "fixed"),
        ("tangent-sgd", "fixed"),
        ("convolutional-rbf", "fixed"),
        ("shi2022/ntk", "fixed"),
        ("shi2022/random-features", "fixed"),
        ("shi2022/learner", "learned"),
        ("shi2022/one-step", "learned"),
        ("network", "learned"),
        ("sgd", "learned"),
        ("rfm", "learned"),
        ("malach2019/learner-network", "learned"),
        ("random-forest", "tree"),
        ("knn", ""),
    ],
)
def test_learners_are_grouped_by_their_features(name, group):
    assert group_of(name) == feature_group(describe(registry.learners()[name].value)) == group


def test_an_unknown_learner_has_no_group():
    assert group_of("mine.py:Own") == "" and feature_group({}) == ""


def test_plots_tell_fixed_from_learned_features():
    def line(name, group=""):
        return ViewSeries(name, (1.0,), (2.0,), group=group)

    series = [line("network: exponent 1"), line("published", "ntk"), line("ntk"), line("other")]
    groups = {"network: exponent 1": "learned", "ntk": "fixed"}
    found = told_apart(series, groups)
    assert [each.name for each in found] == [
        "network: exponent 1",
        "published",
        "ntk (fixed features)",
        "other",
    ]
    colors = [look.color for look in looks(found)]
    assert colors[0] in FAMILIES["learned"] and colors[1] == colors[2] == FAMILIES["fixed"][0]
    assert [look.edge for look in looks(found)] == ["", "open", "open", ""]
    assert told_apart(series[:1], groups) == tuple(series[:1]), "one group needs no marks"
    assert not set(FAMILIES["fixed"]) & set(FAMILIES["learned"])


def test_every_plot_of_a_claim_has_labels_on_both_axes():
    for claim in registry.claims().values():
        for plot in claim.plots:
            assert plot.x.strip() and plot.y.strip() and plot.title.strip(), claim.id


def test_every_axis_is_labeled(shown):
    for plot in shown.all_plots:
        assert plot.bare or (plot.x and plot.y), plot.title
        assert shown.title not in plot.title, "ids are no titles"
