"""Ranks among published classifiers, on constructed accuracies."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from unlazy.cli import main
from unlazy.core.errors import BadInput
from unlazy.tables.uci_benchmark import paired_tests, published_accuracies, standings
from unlazy.tasks.tables.uci import uci_tables


def published(tmp_path):
    path = tmp_path / "delgado2014.txt"
    path.write_text(
        "problema one two three min max mean std\none-table 90 80 -1 0 0 0 0\nother 60 70 -- 0 "
        "0 0 0\n----\nmean 1 1 1 1 1 1 1\n"
    )
    return path


def uci(tmp_path, permuted=False):
    """Return two tables; `permuted`: the same rows and splits, with permuted classes."""
    draw = np.random.default_rng(0)
    held = {}
    for name, n in (("one-table", 60), ("other", 40)):
        X = draw.standard_normal((n, 3))
        y = (X[:, 0] > 0).astype(np.uint8)
        y = np.random.default_rng(1).permutation(y) if permuted else y
        held |= {f"{name}/X": X.astype(np.float32), f"{name}/y": y}
        parts = np.array_split(draw.permutation(n).astype(np.uint16), 4)
        for k, part in enumerate(parts):
            held |= {
                f"{name}/fold{k}_test": part,
                f"{name}/fold{k}_train": np.setdiff1d(np.arange(n), part).astype(np.uint16),
            }
        held |= {
            f"{name}/tune_train": np.arange(n // 2, dtype=np.uint16),
            f"{name}/tune_val": np.arange(n // 2, n, dtype=np.uint16),
        }
    np.savez(tmp_path / "uci.npz", **held)
    return tmp_path / "uci.npz"


def test_ranks_fractions_and_missing_accuracies(tmp_path):
    names, known = published_accuracies(published(tmp_path))
    assert (
        names == ["one", "two", "three"]
        and np.isnan(known["other"][2])
        and np.isnan(known["one-table"][2])
    )
    found = {
        standing.name: standing
        for standing in standings({"ours": {"one-table": 95.0, "other": 66.0}}, names, known)
    }
    assert found["ours"].rank == 1.5 and found["ours"].mean == 80.5
    assert found["three"].mean == (85 + 65) / 2, "a missing accuracy is the mean of the others"
    assert found["two"].rank == 2.0 and found["two"].p95 == 50.0 and found["one"].p90 == 50.0
    assert found["ours"].pma == pytest.approx(100 * (1 + 66 / 70) / 2)


def test_pairs_are_compared_on_the_tables_both_have():
    a, b = {"t1": 90.0, "t2": 80.0, "t3": 70.0}, {"t1": 89.0, "t2": 81.0}
    found = paired_tests({"a": a, "b": b})[0]
    assert (found.won, found.lost, found.difference) == (1, 1, 0.0)


def test_the_command_runs_resumes_and_knows_tables_by_their_content(tmp_path):
    published(tmp_path)
    out, store = tmp_path / "out.json", tmp_path / "s.sqlite"
    command = ["uci", "--data", str(uci(tmp_path)), "--method", "Laplace kernel"]
    command += ["--store", str(store), "--json", str(out)]

    def call(*words):
        found = CliRunner().invoke(main, [*command, *map(str, words)])
        assert found.exit_code == 0, found.output
        return found.output, json.loads(out.read_text())

    told, first = call("--out", tmp_path / "ranking.png")
    assert first["command"] == "unlazy uci --data uci.npz --method 'Laplace kernel'"
    accuracies = first["accuracies"]["Laplace kernel"]
    assert accuracies["one-table"] > 70 and (tmp_path / "ranking.png").exists()
    assert first["provenance"]["records"] == 8
    told, again = call()
    assert "8 trials, already stored" in told and again == first
    uci(tmp_path, permuted=True)
    told, other = call()
    assert "Running 8 trials again" in told and "UciData one-table" in told
    assert other["accuracies"]["Laplace kernel"]["one-table"] < 70
    shown = CliRunner().invoke(main, ["show", "--store", str(store)]).output
    assert "Laplace kernel" in shown


def test_missing_data_are_reported(tmp_path):
    with pytest.raises(BadInput, match="There is no file"):
        list(uci_tables(tmp_path / "none.npz"))
    with pytest.raises(BadInput, match="Did you mean 'other'"):
        list(uci_tables(uci(tmp_path), ["othr"]))
    (tmp_path / "bad.txt").write_text("a b c\n")
    with pytest.raises(BadInput, match="is not the published table"):
        published_accuracies(tmp_path / "bad.txt")
