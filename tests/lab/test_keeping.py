"""Rebuild trials, rerun records, estimate costs, and stop."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import toys
import unlazy
from faulty import Job
from toys import BitCount, Halfspace, hand_record, keep, toy_trial
from unlazy.cli.main import main
from unlazy.core.errors import BadInput, StoreError
from unlazy.lab import costs
from unlazy.lab.costs import (
    COMPILE_SECONDS,
    COMPILING,
    EXACT_SECONDS,
    SPEED,
    Cost,
    Costs,
    fitted,
    kind_of,
)
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.engines.pools.messages import Reply, read, written
from unlazy.lab.rebuilding import brief, rebuilt
from unlazy.lab.registry import claims, load_file
from unlazy.lab.repeating import differences
from unlazy.lab.stopping import Stopped, stoppable, writing
from unlazy.lab.store import Store
from unlazy.lab.trials import Failure, Measurement, key_of
from unlazy.studies.claim import claim_study


def trials_of(name):
    """Return some trials of a claim at smoke scale."""
    arms = claim_study(claims()[name], "smoke", seeds=1, first_seed=10).trials["claim"]
    return [trial for arm in arms.values() for trial in arm][:2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.mark.slow
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
        ({"seed": 11}, "its classes or the record have changed"),
        ({"family": {"type": "NoSuchFamily"}}, "there is no class NoSuchFamily"),
        ({"family": {"type": "Popen", "args": "true"}}, "there is no class Popen"),
        ({"family": {"array": "0"}}, "a record has only a hash"),
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
    trial = Measurement(load_file(Path(file)).BitCount((10, 20)), 0)
    with Store(path) as store:
        keep([trial], store, LocalEngine())
    found = CliRunner().invoke(main, ["rerun", trial.key[:8], "--store", str(path), "--load", file])
    assert found.exit_code == 0 and "bitwise equal" in found.output, found.output
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
    assert found.exit_code == 2 and "no record with a key that begins with 'zz'" in found.output


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


def test_the_doctor_reports_problems(path, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "shutil.which", lambda name: None
    )  # SLURM that is installed but does not run is a problem
    found = CliRunner().invoke(main, ["doctor", "--store", str(path)])
    assert (
        "All checks passed." in found.output and "none yet" in found.output and found.exit_code == 0
    ), found.output
    path.write_bytes(b"not a store at all, but longer than a header" * 40)
    found = CliRunner().invoke(main, ["doctor", "--store", str(path)])
    assert found.exit_code == 1 and "✗ store" in found.output and "1 check failed." in found.output


def test_a_failure_is_reported_until_there_is_a_record(path):
    record = hand_record(loss=1.0)
    with Store(path) as store:
        store.add_failure(
            Failure(record.id, record.trial, "it was unlucky", {"unlazy": "0"}, "2026")
        )
        with pytest.raises(StoreError, match="could not be run: it was unlucky"):
            store.get(record.id)
        store.add(record)
        assert store.failures() == {} and store.get(record.id).value("loss") == 1.0


def test_a_study_with_a_failure_is_not_judged_and_the_command_says_so(path, monkeypatch):
    """If one trial fails, the claim is named and the status is 4."""

    def crippled(self, trials, callback):
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
        and "Incomplete: shi2022/table1" in found.output
    ), found.output


def test_costs_are_fitted_to_past_runs():
    small, large = (toy_trial(n=n) for n in (40, 4000))
    assert Costs().seconds(large) == pytest.approx(large.work / SPEED)
    assert Costs().compile_seconds == COMPILE_SECONDS
    true = lambda work: 0.5 + 3e-10 * work  # noqa: E731
    seen = [Cost(kind_of(small), work, true(work)) for work in (small.work, 10 * small.work)]
    known = Costs([*seen, Cost(COMPILING, 4, 2.0)])
    assert known.seconds(large) == pytest.approx(true(large.work), rel=1e-6)
    assert known.compile_seconds == 0.5
    assert fitted([(1e10, 2.0)], 1e-10) == (1.0, 1e-10)
    assert fitted([(1e10, 0.5)], 1e-10) == (0.0, 5e-11)


def test_an_exact_computation_costs_what_it_did_or_what_its_class_does():
    one, same, other = (Measurement(Job(wait), seed) for wait, seed in ((1, 0), (1, 7), (5, 0)))
    known = Costs([Cost(kind_of(one), 1.0, 0.3)])
    assert known.seconds(same) == known.seconds(other) == pytest.approx(0.3)
    assert known.seconds(Measurement(BitCount((3,)), 0)) == EXACT_SECONDS


def test_a_run_stores_its_costs(path):
    trials = [Measurement(Job(0.02), seed) for seed in range(3)]
    with Store(path) as store:
        keep(trials, store, engine := LocalEngine())
        (cost,) = [each for each in store.costs() if each.kind.startswith("Job ")]
        assert 0.02 <= cost.seconds < 1.0 and cost.work == trials[0].work
        keep([], store, engine)
        assert engine.costs.seconds(trials[0]) == pytest.approx(cost.seconds) and engine.costs.known
    assert costs.Costs([cost]).seconds(trials[0]) == pytest.approx(cost.seconds)


def test_a_write_is_finished_before_anything_stops():
    done = []

    def told_to_stop(what):
        os.kill(os.getpid(), signal.SIGTERM)
        done.append(what)

    with stoppable(), pytest.raises(Stopped), writing():
        told_to_stop("written")
    with stoppable(), pytest.raises(Stopped) as caught:
        told_to_stop("never")
    assert (
        done == ["written"]
        and caught.value.status == 143
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )


STOPPED_TWICE = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from unlazy.lab.stopping import stoppable
with stoppable():
    try:
        os.kill(os.getpid(), signal.{first})
    finally:
        os.kill(os.getpid(), signal.{second})
        print("still here")
"""


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [("SIGINT", "SIGINT", 130), ("SIGTERM", "SIGINT", 130), ("SIGHUP", "SIGTERM", 143)],
)
def test_a_second_signal_ends_the_process_at_once(first, second, status):
    code = STOPPED_TWICE.format(first=first, second=second)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (status, ""), found.stderr


def test_ignored_signals_stay_ignored():
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_only_messages_to_workers_are_pickles():
    root = Path(unlazy.__file__).parent
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in root.rglob("*.py")
    }
    assert {name for name, text in texts.items() if "pickle.load" in text} == {
        "lab/engines/pools/messages.py"
    }
    # The batches of CIFAR-10 are pickles; their reader only creates arrays.
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
