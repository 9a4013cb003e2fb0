"""Both protocols of the UCI experiment, on synthetic tables."""

import numpy as np
import pytest

from contracts import check_computation
from unlazy.core.errors import BadInput
from unlazy.papers.radhakrishnan2024 import CLAIMS
from unlazy.papers.radhakrishnan2024 import refitting as r
from unlazy.tasks.tables.uci import Split, UciTable


def table(kind, n=160, d=10, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d))
    y = (X[:, 0] > 0) if kind == "one column" else draw.random(n) < 0.5
    half, quarters = draw.permutation(n), np.array_split(draw.permutation(n), 4)
    splits = tuple(Split(np.delete(X, q, axis=0), np.delete(y, q), X[q], y[q]) for q in quarters)
    return UciTable(kind, X, y, splits, half[: n // 2], half[n // 2 :], tuple(quarters))


def test_both_protocols_gain_if_one_column_is_relevant():
    found = r._table(table("one column"))
    assert (
        found.kept > found.plain + 3 and found.refitted > found.plain + 3 and 0.4 < found.seen < 0.6
    )


def test_a_kept_metric_depends_on_labels_of_test_rows():
    """With random labels, only the protocol that keeps the metric can exceed the plain kernel."""
    found = np.array([r._table(table("random labels", 80, 30, seed)) for seed in range(8)])
    plain, kept, refitted, _ = found.mean(axis=0)
    assert kept > refitted + 3 and abs(refitted - plain) < 4


def test_a_kept_metric_has_no_gain_outside_the_tuning_half():
    tables = [table("random labels", 80, 30, seed) for seed in range(8)]
    found = np.array([r._table(each, unseen=True) for each in tables])
    _, kept, refitted, seen = found.mean(axis=0)
    assert seen == 0 and abs(kept - refitted) < 4


@pytest.mark.slow
def test_the_computation_meets_its_contract():
    check_computation(r.Refitting(max_rows=0))


def test_a_missing_file_of_tables_is_reported(monkeypatch):
    monkeypatch.delenv("UNLAZY_UCI", raising=False)
    with pytest.raises(BadInput, match="UNLAZY_UCI"):
        CLAIMS[0].study("laptop")["tables"]._tables(np.random.default_rng(0))
