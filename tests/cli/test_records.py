"""Records answer only for the same code, libraries and data, by all commands that run trials."""

import json

import numpy as np
import pandas
import pytest
from click.testing import CliRunner

from selection import slow_but
from unlazy.cli.main import main
from unlazy.lab import provenance
from unlazy.lab.store import Store
from unlazy.studies import audit

SIZES = ["--seeds", "2", "--budget", "1", "--test", "100"]
COMMANDS = {
    "compare": ["parity", "--set", "d=4", "--learner", "linear", "--n", "20", *SIZES],
    "scaling": ["parity", "--learner", "linear", "--vary", "d=2", "--max-n", "64", *SIZES],
    "reproduce": ["malach2019/lemma8", "--scale", "smoke"],
    "audit": ["t.csv", "--target", "y", "--no-explain", "--method", "linear"],
    "uci": ["--data", "uci.npz", "--method", "Laplace kernel"],
}
COMMANDS["audit"] += ["--method", "RFM"]


def call(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def write_tables():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((40, 2))
    pandas.DataFrame(x, columns=["a", "b"]).assign(y=x[:, 0]).to_csv("t.csv", index=False)
    halves = {"train": np.arange(20, dtype=np.uint16), "test": np.arange(20, 40, dtype=np.uint16)}
    folds = {f"one/fold{k}_{part}": rows for k in range(4) for part, rows in halves.items()}
    tuned = {"one/tune_train": halves["train"], "one/tune_val": halves["test"]}
    y = (x[:, 0] > 0).astype(np.uint8)
    np.savez("uci.npz", **{"one/X": x.astype(np.float32), "one/y": y}, **folds, **tuned)
    with open("delgado2014.txt", "w") as file:
        file.write("problema p min max mean std\none 90 0 0 0 0\n----\nmean 1 1 1 1 1\n")


@pytest.mark.parametrize("verb", slow_but(["compare", "scaling", "reproduce"], COMMANDS))
def test_other_libraries_run_anew_and_older_records_answer_on_request(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "REPEATS", 1)
    write_tables()
    words = [verb, *COMMANDS[verb], "--store", "s.sqlite", "--json", "-"]

    def made_by(*options):
        found = call(*words, *options)
        assert found.exit_code == 0, found.output
        told = json.loads(found.stdout)
        one = told[0] if verb == "reproduce" else told
        return found.stderr, one["provenance"], one["older"] if verb == "reproduce" else None

    def count():
        with Store("s.sqlite", read_only=True) as store:
            return len(store.all_ids())

    _, first, _ = made_by()
    trials = count()
    known = provenance._libraries()
    monkeypatch.setattr(provenance, "_libraries", lambda: known | {"scipy": "9.9"})
    told, origin, older = made_by("--reuse-older")
    assert count() == trials and "come from records made by other code" in told
    assert (older or origin["older"]) == trials and origin["scipy"] == first["scipy"]
    told, origin, older = made_by()
    assert count() == 2 * trials and f"scipy {known['scipy']} → 9.9" in told
    assert not (older or origin.get("older"))
    made_by("--fresh")
    assert count() == 2 * trials


def test_diff_names_what_changed_and_by_how_much(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["compare", *COMMANDS["compare"], "--store", "s.sqlite"]
    call(*words)
    assert (
        "no trial has records of different" in call("store", "diff", "--store", "s.sqlite").output
    )
    with Store("s.sqlite") as store:
        old = [record for record in store.records() if "test_accuracy" in record.measurements]
        parts = store.fingerprint(old[0].fingerprint)
        parts["code"]["unlazy.kernels.stationary"] = "edited"
        store.add_fingerprints({"edited": parts})
        for place, record in enumerate(old):
            measured = record.measurements | {"test_accuracy": (record.value("test_accuracy") + 1,)}
            measured |= {"loss": (3.0,), "test_loss": (40.0,)} if place else {}
            vars(record).update(fingerprint="edited", created="2999", measurements=measured)
            store.add(record)
    shown = call("store", "diff", "--store", "s.sqlite").output.splitlines()
    assert "2 trials have records of different fingerprints" in shown[0]
    assert "kernels.stationary" in shown[0] and "largest change: test_loss " in shown[0]
    assert len(shown) == 3 and "FeatureRidge, n = 20, seed 11: test_loss " in shown[1]
    assert "→ 40, loss " in shown[1] and "test_accuracy " in shown[1]
    details = call("store", "diff", old[0].key[:10], "--details", "--store", "s.sqlite").output
    assert len(details.splitlines()) == 2 and "more" not in details.splitlines()[1]
    told = json.loads(call("store", "diff", "--store", "s.sqlite", "--json", "-").stdout)
    assert [each["fingerprints"][1] for each in told] == ["edited"] * 2
    change = told[1]["measures"]["test_accuracy"]
    assert change["after"] == change["before"] + 1
    missing = call("store", "diff", "zzz", "--store", "s.sqlite")
    assert missing.exit_code == 2 and "a key that begins with 'zzz'" in missing.output
