"""Keeping stores, running a record again, what trials cost, and being told to stop."""

import dataclasses
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import toys
import unlazy
from faulty import Errand
from toys import CoinCount, Halfspace, hand_record, keep, toy_trial
from unlazy.cli.main import main
from unlazy.core.errors import BadInput, StoreError
from unlazy.lab import costs
from unlazy.lab.costs import COMPILE_SECONDS, COMPILING, SPEED, Cost, Costs, fitted, kind_of
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.engines.pools.parcels import Reply, read, written
from unlazy.lab.maintenance import check, compare, merge, unreferred
from unlazy.lab.rebuilding import brief, rebuilt
from unlazy.lab.registry import claims, load_file
from unlazy.lab.repeating import differences
from unlazy.lab.stopping import Terminated, stoppable, writing
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Failure, Measurement, key_of
from unlazy.studies.claim import claim_study


def seeded(seed, loss=1.0, **options):
    """A record that is another one for each seed."""
    return hand_record(f"k{seed}", seed=seed, loss=loss, **options)


def trials_of(name):
    """Some trials of a claim at smoke scale."""
    arms = claim_study(claims()[name], "smoke", seeds=1, first_seed=10).trials["claim"]
    return [trial for arm in arms.values() for trial in arm][:2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def test_every_trial_of_the_ledger_can_be_made_from_its_description():
    for name in claims():
        for trial in trials_of(name):
            told = json.loads(json.dumps(trial.describe()))
            again = rebuilt(trial.key, told)
            assert type(again) is type(trial) and again.id == trial.id
            assert key_of(brief(told)) == trial.key, "older stores get their keys by this"


def test_a_description_that_was_changed_is_refused():
    trial = trials_of("shi2022/table1")[0]
    told = trial.describe()
    for change, said in (
        ({"seed": 11}, "no longer what they were"),
        ({"family": {"type": "NoSuchFamily"}}, "there is no class NoSuchFamily"),
        ({"family": {"type": "Popen", "args": "true"}}, "there is no class Popen"),
        ({"family": {"array": "0"}}, "a record keeps only a hash"),
        ({"surplus": 1}, "TypeError"),
    ):
        with pytest.raises(BadInput, match=said):
            rebuilt(trial.key, told | change)
    with pytest.raises(BadInput, match="Name the file that defines it with --load"):
        rebuilt("k", toy_trial().describe())
    deep = {"a": 1}
    for _ in range(60):
        deep = {"a": deep}
    with pytest.raises(BadInput, match="nested too deeply"):
        rebuilt("k", deep)


def test_rerun_repeats_a_record_and_sees_one_that_was_changed(path):
    file = toys.__file__
    trial = Measurement(load_file(Path(file)).CoinCount((10, 20)), 0)
    with Store(path) as store:
        keep([trial], store, LocalEngine())
    found = CliRunner().invoke(main, ["rerun", trial.key[:8], "--store", str(path), "--load", file])
    assert found.exit_code == 0 and "equal bit by bit" in found.output, found.output
    with Store(path) as store:
        record = store.get(trial.id)
        name = min(record.measurements)
        wrong = record.measurements | {
            name: tuple(value + 1 for value in record.measurements[name])
        }
        store.add(dataclasses.replace(record, measurements=wrong), replace=True)
    found = CliRunner().invoke(main, ["rerun", trial.key, "--store", str(path), "--load", file])
    assert found.exit_code == 1 and f"{name}: " in found.output and "DIFFERENT" in found.output
    found = CliRunner().invoke(main, ["rerun", "zz", "--store", str(path)])
    assert found.exit_code == 2 and "no record whose key begins with 'zz'" in found.output


def test_records_agree_up_to_rounding_only():
    one = hand_record(loss=(1.0, float("nan")), accuracy=(100.0, 50.0))
    same = hand_record(loss=(1.0 + 5e-5, float("nan")), accuracy=(100.005, 50.0))
    assert all(each.equal for each in differences(one, same))
    for other in (
        hand_record(loss=(1.001, float("nan")), accuracy=(100.0, 50.0)),
        hand_record(loss=(1.0, 1.0), accuracy=(100.0, 50.0)),
        hand_record(loss=(1.0, float("nan"))),
        hand_record(loss=(1.0, float("nan")), accuracy=(100.0, 50.0), status="diverged"),
    ):
        assert not all(each.equal for each in differences(one, other))


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
def test_what_was_changed_by_hand_is_found(path, tmp_path, what):
    with Store(path) as store:
        for seed in range(3):
            source = "elsewhere" if seed == 1 else "here"
            arrays = {"w": np.ones(2)}
            store.add(seeded(seed, arrays=arrays, details={"x": 1}, source=source))
    assert check(path) == (3, 0, 0, ())
    changed_by_hand(path, BY_HAND[what])
    (problem,) = check(path).problems
    assert "k1.f is not what was written" in problem
    with Store(tmp_path / "other.sqlite") as other:
        found = merge(other, [path])
        assert found.added == 2 and len(found.damaged) == 1


def test_a_whole_store_has_no_problems_and_a_broken_one_names_them(path):
    with Store(path) as store:
        for seed in range(3):
            store.add(seeded(seed, arrays={"w": np.ones(2)}))
    command = ["store", "check", "--store", str(path)]
    assert CliRunner().invoke(main, command).exit_code == 0
    changed_by_hand(path, BY_HAND["value"])
    changed_by_hand(path, "UPDATE arrays SET dtype = '|O' WHERE id = 'k0.f'")
    problems = check(path).problems
    assert len(problems) == 2 and any("'|O' is no kind of number" in each for each in problems)
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 1 and "2 problems" in found.output


def parts(**changes):
    """Components of a fingerprint, some of them changed."""
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
    """What changed between them, and by how much each measure did."""
    with Store(path) as store:
        for name, loss, created in (("f", 1.0, "1"), ("g", 1.0, "2"), ("h", 4.0, "3")):
            store.add(seeded(0, loss, accuracy=90.0, fingerprint=name, created=created))
        store.add(seeded(1))
        edited = parts(libraries={"jax": "0.10"}, code={"unlazy.kernels.wide": "b"})
        store.add_fingerprints({"f": parts(), "g": parts(libraries={"jax": "0.10"}), "h": edited})
        (found,) = compare(store)
        assert compare(store, "k1") == []
    assert found.key == "k0" and [record.fingerprint for record in found.records] == [*"fgh"]
    assert found.trial == "toys.Halfspace · toys.None, n = 1, seed 0"
    assert found.changes == (("jax 0.9 → 0.10",), ("kernels.wide",))
    first, second = ({each.measure: each.largest for each in pair} for pair in found.differences)
    assert first == {"loss": 0.0, "accuracy": 0.0}
    assert second == {"loss": pytest.approx(0.75), "accuracy": 0.0}


def test_gc_removes_what_no_run_refers_to_and_spares_the_young(path):
    old, young, used = (
        seeded(seed, created=created) for seed, created in ((0, "2020"), (1, "2999"), (2, "2020"))
    )
    with Store(path) as store:
        for record in (old, young, used):
            store.add(record)
        store.add_run(Run("claim", "c", "smoke", 10, 1, {"a": [used.id]}, "2026"))
        assert unreferred(store, 1.0) == [old.id]
    assert (
        "1 records would be removed"
        in CliRunner().invoke(main, ["store", "gc", "--dry-run", "--store", str(path)]).output
    )
    assert (
        "1 records removed"
        in CliRunner().invoke(main, ["store", "gc", "--store", str(path)]).output
    )
    with Store(path, read_only=True) as store:
        assert store.all_ids() == sorted([young.id, used.id]) and store.integrity() == []


def test_the_doctor_knows_health_from_illness(path, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "shutil.which", lambda name: None
    )  # SLURM that is installed and does not run is an illness, too
    found = CliRunner().invoke(main, ["doctor", "--store", str(path)])
    assert "All is well." in found.output and "none yet" in found.output and found.exit_code == 0, (
        found.output
    )
    path.write_bytes(b"not a store at all, but longer than a header" * 40)
    found = CliRunner().invoke(main, ["doctor", "--store", str(path)])
    assert (
        found.exit_code == 1
        and "✗ store" in found.output
        and "1 things need a hand" in found.output
    )


def test_a_failure_is_told_and_forgotten_once_there_is_a_record(path):
    record = seeded(0)
    with Store(path) as store:
        store.add_failure(
            Failure(record.id, record.trial, "it was unlucky", {"unlazy": "0"}, "2026")
        )
        with pytest.raises(StoreError, match="could not be run: it was unlucky"):
            store.get(record.id)
        store.add(record)
        assert store.failures() == {} and store.get(record.id).value("loss") == 1.0


def test_a_study_with_a_failure_is_not_judged_and_the_command_says_so(path, monkeypatch):
    """The engine gives up on one trial; the claim is named, and the status is 4."""

    def crippled(self, trials, watcher):
        for place, trial in enumerate(trials):
            if place == 0:
                yield Failure(trial.id, trial.describe(), "it was unlucky", {}, "2026")

    monkeypatch.setattr(LocalEngine, "run", crippled)
    command = [
        "reproduce",
        "shi2022/table1",
        "--scale",
        "smoke",
        "--seeds",
        "1",
        "--first-seed",
        "10",
        "--store",
        str(path),
    ]
    found = CliRunner().invoke(main, command)
    assert (
        found.exit_code == 4
        and "it was unlucky" in found.output
        and "shi2022/table1 is not judged" in found.output
    ), found.output


def test_costs_follow_what_was_seen():
    small, large, other = (Measurement(Errand(wait), 0) for wait in (0.1, 10.0, 1.0))
    assert (
        Costs().seconds(large) == large.work / SPEED and Costs().compile_seconds == COMPILE_SECONDS
    )
    true = lambda work: 0.5 + 3e-10 * work  # noqa: E731
    past = [Cost(kind_of(small), each.work, true(each.work)) for each in (small, other)]
    known = Costs([*past, Cost(COMPILING, 4, 2.0)])
    assert (
        known.seconds(large) == pytest.approx(true(large.work), rel=1e-6)
        and known.compile_seconds == 0.5
    )
    assert fitted([(1e10, 2.0)], 1e-10) == (1.0, 1e-10) and fitted([(1e10, 0.5)], 1e-10) == (
        0.0,
        5e-11,
    )
    unseen = Measurement(CoinCount((3,)), 0)
    assert known.seconds(unseen) > 0


def test_a_run_teaches_the_store_what_it_cost(path):
    trials = [Measurement(Errand(0.02), seed) for seed in range(3)]
    with Store(path) as store:
        keep(trials, store, engine := LocalEngine())
        (cost,) = [each for each in store.costs() if each.kind == "Errand"]
        assert 0.02 <= cost.seconds < 1.0 and cost.work == trials[0].work
        keep([], store, engine)
        assert engine.costs.seconds(trials[0]) == pytest.approx(cost.seconds) and engine.costs.known
    assert costs.Costs([cost]).seconds(trials[0]) == pytest.approx(cost.seconds)


def test_a_write_is_finished_before_anything_stops():
    done = []

    def told_to_stop(what):
        os.kill(os.getpid(), signal.SIGTERM)
        done.append(what)

    with stoppable():
        with pytest.raises(Terminated), writing():
            told_to_stop("written")
        with pytest.raises(Terminated):
            told_to_stop("never")
    assert done == ["written"] and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_no_module_of_ours_reads_pickles_but_those_that_hand_work_round():
    root = Path(unlazy.__file__).parent
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in root.rglob("*.py")
    }
    assert {name for name, text in texts.items() if "pickle.load" in text} == {
        "lab/engines/pools/parcels.py"
    }
    # The batches of CIFAR-10 are pickles; their reader makes arrays of them, and nothing else.
    assert {name for name, text in texts.items() if "Unpickler" in text} == {
        "tasks/images/readers.py"
    }
    assert not any("allow_pickle=True" in text for text in texts.values())
    reply = written(Reply(records=(hand_record(loss=1.0),)))
    assert read(reply).records[0].value("loss") == 1.0 and b"pickle" not in reply


def test_a_users_class_is_found_in_the_file_that_is_named():
    trial = toy_trial()
    assert (
        rebuilt(trial.key, trial.describe(), [sys.modules[Halfspace.__module__]]).key == trial.key
    )
