"""Ranks of estimators among 179 published classifiers on UCI tables.

Tables have four published folds, or a separate test set. A missing published accuracy (a classifier
that failed) is replaced by the mean of the others on that table, which favors that classifier.

Reference: Fernández-Delgado, Cernadas, Barro, Amorim. Do we need hundreds of classifiers to solve
real world classification problems? JMLR 15, 2014.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from unlazy.core.errors import BadInput, require
from unlazy.lab.statistics import estimate


def published_accuracies(path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the classifiers, and their accuracies by table; NaN if not published."""
    require(
        path.exists(), f"There is no file {path}. Name the published accuracies with --published."
    )
    lines = [
        line.split()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    header = lines[0]
    if header[0] != "problema" or header[-4:] != ["min", "max", "mean", "std"]:
        raise BadInput(
            f"{path.name} is not the published table: its first line must be 'problema "
            "CLASSIFIER … min max mean std'."
        )
    names = header[1:-4]
    found = {}
    for line in lines[1:]:
        if line[0] in ("mean", "std") or len(line) != len(header):
            continue
        values = np.array(
            [
                float(value)
                if value.replace(".", "", 1).replace("-", "", 1).isdigit()
                else math.nan
                for value in line[1:-4]
            ]
        )
        found[line[0]] = np.where(values > 0, values, math.nan)
    return names, found


@dataclasses.dataclass(frozen=True)
class Standing:
    """Mean accuracy and Friedman rank of a classifier over tables.

    `rank_half`: half of the 95 % interval of the rank. `p90` and `p95`: percent of the tables with
    at least 90 or 95 % of the best accuracy; `pma`: mean percentage of the best accuracy.
    """

    name: str
    ours: bool
    mean: float
    rank: float
    rank_half: float
    p90: float
    p95: float
    pma: float


def standings(
    measured: Mapping[str, Mapping[str, float]],
    names: Sequence[str],
    published: Mapping[str, np.ndarray],
    *,
    without: Sequence[str] = (),
) -> list[Standing]:
    """Return all classifiers with their ranks, the best first.

    Tables are those that all our estimators were run on, except those in `without`. Each of our
    estimators is ranked among the published classifiers only.
    """
    tables = [
        name
        for name in next(iter(measured.values()))
        if all(name in each for each in measured.values())
        and name in published
        and name not in without
    ]
    require(bool(tables), "None of the measured tables is among the published ones.")
    others = np.array([published[name] for name in tables])  # t c
    others = np.where(np.isnan(others), np.nanmean(others, axis=1, keepdims=True), others)
    found = []
    for name, values in measured.items():
        own = np.array([values[table] for table in tables])
        found.append(_standing(name, True, own, np.column_stack([others, own]), -1))
    found += [
        _standing(name, False, others[:, index], others, index) for index, name in enumerate(names)
    ]
    return sorted(found, key=lambda standing: standing.rank)


def _standing(name: str, ours: bool, own: np.ndarray, everyone: np.ndarray, i: int) -> Standing:
    ranks = scipy.stats.rankdata(-everyone, axis=1)[:, i]
    ratio = own / everyone.max(axis=1)
    half = estimate(ranks).half
    fractions = (
        100 * float(np.mean(ratio >= 0.9)),
        100 * float(np.mean(ratio >= 0.95)),
        100 * float(np.mean(ratio)),
    )
    return Standing(name, ours, float(own.mean()), float(ranks.mean()), half, *fractions)


@dataclasses.dataclass(frozen=True)
class PairedTest:
    """Comparison of two estimators on the same tables.

    `difference`: mean difference of accuracy. `won`, `lost`: numbers of tables. `chance`: two-sided
    p-value of Wilcoxon's test.
    """

    first: str
    second: str
    difference: float
    won: int
    lost: int
    chance: float


def paired_tests(measured: Mapping[str, Mapping[str, float]]) -> list[PairedTest]:
    """Return the tests of all pairs of estimators."""
    names, found = list(measured), []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            both = [table for table in measured[first] if table in measured[second]]
            gaps = np.array([measured[first][table] - measured[second][table] for table in both])
            chance = float(scipy.stats.wilcoxon(gaps).pvalue) if np.any(gaps) else 1.0
            found.append(
                PairedTest(
                    first,
                    second,
                    float(gaps.mean()),
                    int((gaps > 0).sum()),
                    int((gaps < 0).sum()),
                    chance,
                )
            )
    return found
