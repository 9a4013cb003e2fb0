"""Check, merge, compare and compact stores."""

import sqlite3
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner

from toys import hand_record
from unlazy.cli.main import main
from unlazy.core.errors import StoreError
from unlazy.lab.maintenance import check, compare, merge, unreferred
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Failure


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def seeded(seed, loss=1.0, **options):
    """Return a record that depends on the seed."""
    return hand_record(f"k{seed}", seed=seed, loss=loss, **options)


def changed_by_hand(path, statement):
    db = sqlite3.connect(path)
    assert db.execute(statement).rowcount
    db.commit()
    db.close()


#: Changes after which everything can still be read.
BY_HAND = {
    "value": "UPDATE records SET measurements = zeroblob(16) WHERE id = 'k1.f'",
    "status": "UPDATE records SET status = 'diverged' WHERE id = 'k1.f'",
    "steps": "UPDATE records SET steps = '[0,2]' WHERE id = 'k1.f'",
    "name": "UPDATE records SET names = '[\"accuracy\"]' WHERE id = 'k1.f'",
    "details": "UPDATE records SET details = '{\"x\":2}' WHERE id = 'k1.f'",
    "trial": "UPDATE records SET trial = replace(trial, '\"n\":1', '\"n\":7') WHERE id = 'k1.f'",
    "fingerprint": "UPDATE records SET fingerprint = 'g' WHERE id = 'k1.f'",
    "seconds": "UPDATE records SET seconds = 0.25 WHERE id = 'k1.f'",
    "time": "UPDATE records SET created = '2027' WHERE id = 'k1.f'",
    "provenance": "UPDATE provenance SET content = '{}' WHERE content LIKE '%elsewhere%'",
    "array": "UPDATE arrays SET data = zeroblob(16) WHERE id = 'k1.f'",
    "missing array": "DELETE FROM arrays WHERE id = 'k1.f'",
    "surplus array": "INSERT INTO arrays VALUES ('k1.f', 'v', '<f8', '[1]', zeroblob(8))",
}


@pytest.mark.parametrize("what", BY_HAND)
def test_a_manual_change_is_found(path, tmp_path, what):
    with Store(path) as store:
        for seed in range(3):
            source = "elsewhere" if seed == 1 else "here"
            arrays = {"w": np.ones(2)}
            store.add(seeded(seed, arrays=arrays, details={"x": 1}, source=source))
    assert check(path) == (3, 0, 0, ())
    changed_by_hand(path, BY_HAND[what])
    (problem,) = check(path).problems
    assert "k1.f was changed" in problem
    with Store(tmp_path / "other.sqlite") as other:
        found = merge(other, [path])
        assert found.added == 2 and len(found.damaged) == 1


def test_an_intact_store_has_no_problems_and_a_damaged_one_lists_them(path):
    with Store(path) as store:
        for seed in range(3):
            store.add(seeded(seed, arrays={"w": np.ones(2)}))
    command = ["store", "check", "--store", str(path)]
    assert CliRunner().invoke(main, command).exit_code == 0
    changed_by_hand(path, BY_HAND["value"])
    changed_by_hand(path, "UPDATE arrays SET dtype = '|O' WHERE id = 'k0.f'")
    problems = check(path).problems
    assert len(problems) == 2 and any("'|O' is not a numeric dtype" in each for each in problems)
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 1 and "2 problems" in found.output


def parts(**changes):
    """Return components of a fingerprint with changes."""
    usual = {"code": {"unlazy.kernels.wide": "a"}, "libraries": {"jax": "0.9"}, "data": {}}
    return {"own": {}} | usual | changes


def test_stores_of_two_machines_become_one(tmp_path, path):
    other = tmp_path / "other.sqlite"
    with Store(path) as store:
        store.add(seeded(0))
        store.add(seeded(1))
        store.register_rules_at([("c", "r", "2026-02")])
        store.add_run(Run("claim", "c", "smoke", 10, 1, {}, "2026-02"))
    with Store(other) as store:
        store.add(seeded(1, 2.0))
        store.add(seeded(1, 3.0, fingerprint="g", created="2027"))
        store.add(seeded(2, arrays={"w": np.arange(3.0)}))
        store.register_rules_at([("c", "r", "2026-01"), ("d", "s", "2026-03")])
        store.add_run(Run("claim", "c", "smoke", 10, 1, {"old": []}, "2026-01"))
        store.add_run(Run("claim", "d", "smoke", 10, 1, {}, "2026-01"))
        store.add_failure(Failure("f", {"seed": 1}, "why", {}, "2026"))
        store.add_fingerprints({"f": parts(), "g": parts(libraries={"jax": "0.10"})})
    with Store(path) as store:
        found = merge(store, [other])
        assert (found.added, found.known, found.runs) == (2, 1, 1)
        assert found.differing == ("k1.f",) and found.damaged == ()
        assert store.get("k1.f").value("loss") == 1.0, "what is there is kept"
        np.testing.assert_array_equal(store.get("k2.f").arrays["w"], np.arange(3.0))
        assert store.others("k1") == ["g", "f"] and store.get("k1.g").value("loss") == 3.0
        assert store.fingerprint("g") == parts(libraries={"jax": "0.10"})
        registered = [store.rule_registered(*rule) for rule in (("c", "r"), ("d", "s"))]
        assert registered == ["2026-01", "2026-03"]
        assert {run.name: run.created for run in store.runs()} == {"c": "2026-02", "d": "2026-01"}
        assert list(store.failures()) == ["f"]
    assert (
        CliRunner().invoke(main, ["store", "merge", str(other), "--store", str(path)]).exit_code
        == 1
    ), "numbers differ"


def test_records_of_one_trial_are_compared_across_fingerprints(path):
    """Changes of code and of measures are listed, the largest first."""
    with Store(path) as store:
        for name, loss, created in (("f", 1.0, "1"), ("g", 1.0, "2"), ("h", 4.0, "3")):
            store.add(seeded(0, loss, accuracy=90.0, fingerprint=name, created=created))
        store.add(seeded(1))
        edited = parts(libraries={"jax": "0.10"}, code={"unlazy.kernels.wide": "b"})
        store.add_fingerprints({"f": parts(), "g": parts(libraries={"jax": "0.10"}), "h": edited})
        second, first = compare(store)
        assert compare(store, "k1") == []
    assert [(pair.old.fingerprint, pair.new.fingerprint) for pair in (first, second)] == [
        *(("f", "g"), ("g", "h"))
    ]
    assert first.trial == "toys.Halfspace · toys.None, n = 1, seed 0"
    assert (first.changes, second.changes) == (("jax 0.9 → 0.10",), ("kernels.wide",))
    assert first.largest == 0 and second.largest == pytest.approx(0.75)
    assert str(second.differences[0]) == "loss 1 → 4" and second.differences[1].largest == 0


def test_gc_removes_outdated_records_without_a_run(path):
    made = (
        (0, "f", "2020"),
        (0, "g", "2021"),
        (1, "f", "2020"),
        (2, "f", "2020"),
        (2, "g", "2999"),
    )
    with Store(path) as store:
        for seed, fingerprint, created in made:
            store.add(seeded(seed, fingerprint=fingerprint, created=created))
        store.add_run(Run("claim", "c", "smoke", 10, 1, {"a": ["k2.f"]}, "2026"))
        assert unreferred(store, 1.0) == ["k0.f"], "the others may be of an interrupted run"
        assert unreferred(store, 1.0, interrupted=True) == ["k0.f", "k0.g", "k1.f"]

    def gc(*options):
        return CliRunner().invoke(main, ["store", "gc", *options, "--store", str(path)]).output

    assert "1 record would be removed" in gc("--dry-run")
    assert "1 record removed" in gc()
    with Store(path, read_only=True) as store:
        assert store.all_ids() == ["k0.g", "k1.f", "k2.f", "k2.g"] and store.integrity() == []
    assert "2 records removed" in gc("--interrupted")


def test_gc_next_to_a_run_loses_nothing_and_no_provenance_id_is_used_twice(path):
    with Store(path) as run, Store(path) as other:
        run.add(seeded(0, source="here"))
        other.remove(["k0.f"])
        other.tidy()
        run.add(seeded(1, source="here"))
        other.add(seeded(2, source="elsewhere"))
        assert [store.get(f"k{seed}.f").seed for store in (run, other) for seed in (1, 2)] == [
            *(1, 2, 1, 2)
        ]
        other.remove(["k2.f"])
        other.tidy()
        other.add(seeded(3, source="later"))
    with sqlite3.connect(path) as db:
        ids = dict(db.execute("SELECT content, id FROM provenance"))
    assert len(ids) == 3 and check(path).problems == ()


def test_a_store_on_a_read_only_file_system_is_read(path, tmp_path):
    folder, view = tmp_path / "folder", tmp_path / "view"
    for each in (folder, view):
        each.mkdir()
    with Store(folder / "s.sqlite") as store:
        store.add(seeded(0))
    mounted = subprocess.run(["mount", "--bind", folder, view], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", view], check=True)
        with Store(view / "s.sqlite", read_only=True) as store:
            assert store.all_ids() == ["k0.f"]
        with pytest.raises(StoreError, match="not writable"):
            Store(view / "s.sqlite")
    finally:
        subprocess.run(["umount", view], check=True)
