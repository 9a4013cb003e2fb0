"""Fixed and learned features: groups of learners, and their marks in plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from unlazy.core.naming import describe
from unlazy.lab import registry
from unlazy.report.view import ViewSeries

#: Groups in the words of legends.
GROUPS = {"fixed": "fixed features", "learned": "learned features", "tree": "tree ensemble"}
_FIXED = {"FeatureRidge", "LogisticRegression", "KernelRidge", "KernelSVM", "PrefixRidge"}
_LEARNED = {"RecursiveFeatureMachine", "Layerwise", "MeanFieldSGD", "DirectionHistogram"}
#: The parameter group of the last layer: training it alone leaves the features fixed.
_READOUT = "a"


def feature_group(learner: Mapping[str, Any]) -> str:
    """Return the group of a learner from its description; empty if it has none.

    A network learns features if layers below the last are trained and it is not linearized.
    """
    if isinstance(inner := learner.get("learner"), Mapping):
        return feature_group(inner)
    name = str(learner.get("type", "")).rpartition(".")[2]
    if name in _FIXED:
        return "fixed"
    if name in _LEARNED:
        return "learned"
    if stages := learner.get("stages"):
        linearized = learner.get("init", {}).get("type") == "TangentInit"
        return "fixed" if linearized or not any(map(_trains_features, stages)) else "learned"
    estimator = str(learner.get("estimator", {}).get("type", ""))
    return "tree" if any(word in estimator for word in ("Forest", "Boosting", "Tree")) else ""


def _trains_features(stage: Mapping[str, Any]) -> bool:
    return stage.get("type") == "LayerDescent" or bool(set(stage.get("rates", ())) - {_READOUT})


def group_of(name: str) -> str:
    """Return the group of a learner of the registry by its name; empty for others."""
    entry = registry.learners().get(name)
    return feature_group(describe(entry.value)) if entry else ""


def told_apart(series: Sequence[ViewSeries], groups: Mapping[str, str]) -> tuple[ViewSeries, ...]:
    """Return series with the group of their learner as color family and in the legend.

    `groups` holds groups by family of series. Plots of a single group are left as they are.
    """
    drawn = {groups.get(each.family, "") for each in series}
    if not {"fixed", "learned"} <= drawn:
        return tuple(series)
    return tuple(_marked(each, groups.get(each.family, "")) for each in series)


def _marked(series: ViewSeries, group: str) -> ViewSeries:
    if not group:
        return series
    name, separator, rest = series.name.partition(": ")
    own = name == series.family
    named = f"{name} ({GROUPS[group]}){separator}{rest}" if own else series.name
    return dataclasses.replace(series, name=named, features=group, group=series.family)
