import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from toys import hand_record, toy_trial
from unlazy.core.errors import StoreError
from unlazy.lab.maintenance import check
from unlazy.lab.schema import APPLICATION_ID, SCHEMA_VERSION
from unlazy.lab.store import Run, Store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def same(a, b):
    assert dataclasses.replace(a, measurements={}, arrays={}) == dataclasses.replace(
        b, measurements={}, arrays={}
    )
    assert a.measurements.keys() == b.measurements.keys()
    for name in a.measurements:
        np.testing.assert_array_equal(a.measurements[name], b.measurements[name])
    for name in a.arrays:
        np.testing.assert_array_equal(a.arrays[name], b.arrays[name])
        assert a.arrays[name].dtype == b.arrays[name].dtype


def test_records_come_back_as_they_were(path):
    values = (1.0, float("nan"), float("inf"), -float("inf"), 0.1 + 0.2)
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(1, 2, 3), "empty": np.zeros((0, 2))}
    record = hand_record("a", seed=3, status="diverged", steps=range(5), loss=values, arrays=arrays)
    with Store(path) as store:
        assert store.add(record)
        same(store.get("a.f"), record)
    with Store(path, read_only=True) as store:
        same(store.get("a.f"), record)
        assert store.get("a.f", arrays=False).arrays == {}
        assert [r.key for r in store.records()] == ["a"]


def test_a_record_without_provenance_is_kept(path):
    record = dataclasses.replace(hand_record("a", loss=1.0), provenance={})
    with Store(path) as store:
        store.add(record)
        same(store.get("a.f"), record)


def test_a_trial_has_one_record(path):
    with Store(path) as store:
        assert store.add(hand_record("a", loss=1.0))
        assert not store.add(hand_record("a", loss=2.0, arrays={"w": np.ones(2)}))
        assert store.get("a.f").value("loss") == 1.0 and store.get("a.f").arrays == {}
        assert store.known(["a.f", "b.f"]) == {"a.f"}
        store.remove(["a.f"])
        assert store.known(["a.f"]) == set() and store.add(hand_record("a", loss=2.0))


def test_a_record_is_replaced_on_request(path):
    """Arrays and details of the old record are removed."""
    old = hand_record("a", loss=1.0, arrays={"w": np.ones(2), "v": np.ones(1)}, details={"x": 1})
    new = hand_record("a", loss=2.0, arrays={"w": np.zeros(3)}, source="there")
    with Store(path) as store:
        assert store.add(old, replace=True) and store.add(new, replace=True)
        same(store.get("a.f"), new)
        assert store.get("a.f").arrays.keys() == {"w"} and store.all_ids() == ["a.f"]
    assert check(path) == (1, 0, 0, ())


def test_details_are_plain_data_and_come_back(path):
    record = hand_record("a", loss=1.0, details={"chosen": ["x", 1.5, None], "why": {"n": 3}})
    with Store(path) as store:
        store.add(record)
        same(store.get("a.f"), record)


def test_one_key_has_a_record_per_fingerprint(path):
    """`find` returns the record of the trial's fingerprint, or on request the newest other one."""
    trial = toy_trial()
    own = hand_record(trial.key, fingerprint=trial.fingerprint.id, loss=3.0)
    older = [
        hand_record(trial.key, fingerprint=name, loss=loss, created=created)
        for name, loss, created in (("one", 1.0, "2025"), ("two", 2.0, "2026"))
    ]
    with Store(path) as store:
        for record in older:
            assert store.add(record)
        assert store.others(trial.key) == ["two", "one"]
        assert store.find([trial]) == {} and store.find([toy_trial(1)], reuse_older=True) == {}
        assert store.find([trial], reuse_older=True)[trial.id].value("loss") == 2.0
        store.add(own)
        for reuse in (False, True):
            assert store.find([trial], reuse_older=reuse)[trial.id].value("loss") == 3.0


def test_runs_are_kept_the_newest_first(path):
    old = Run("claim", "c/1", "smoke", 10, 2, {"Arm": ["a", "b"]}, "2020-01-01T00:00:00+00:00")
    new = Run(
        "contest",
        "c/2",
        "unlazy compare c/2",
        10,
        5,
        {"a": []},
        "2021-01-01T00:00:00+00:00",
        {"task": "c/2"},
    )
    with Store(path) as store:
        store.add_run(old)
        store.add_run(new)
        assert store.runs() == [new, old]
        store.add_run(old._replace(created="2022-01-01T00:00:00+00:00"))
        assert [run.name for run in store.runs()] == ["c/1", "c/2"]
        assert store.runs("contest") == [new] and store.runs("scaling") == []
        store.add_run(new._replace(setting="unlazy compare c/2 --n 7"))
        assert len(store.runs("contest")) == 2, "another command is another run"


def test_a_rule_keeps_the_time_at_which_it_was_first_seen(path):
    with Store(path) as store:
        store.register_rules({"c/1": "x > 1"})
        first = store.rule_registered("c/1", "x > 1")
        store.register_rules({"c/1": "x > 1"})
        store.register_rules({"c/1": "x > 0"})
        assert (
            store.rule_registered("c/1", "x > 1") == first < store.rule_registered("c/1", "x > 0")
        )
        assert store.rule_registered("c/2", "x > 1") is None


WRITER = f"""
import sys
sys.path[:0] = {[os.path.dirname(os.path.dirname(__file__))]!r}
import numpy as np
from toys import hand_record, toy_trial
from unlazy.lab.store import Store
import os, signal
with Store(sys.argv[1]) as store:
    for i in range(int(sys.argv[2]), int(sys.argv[3])):
        arrays = {{"w": np.full(500, i)}}
        store.add(hand_record(f"key-{{i:05d}}", seed=i, loss=float(i), arrays=arrays))
        if len(sys.argv) > 4 and i == int(sys.argv[4]):
            store._db.execute("BEGIN IMMEDIATE")
            half = "('key-half.f', 'w', 'float64', '[1]', x'00')"
            store._db.execute("INSERT INTO arrays VALUES " + half)
            os.kill(os.getpid(), signal.SIGKILL)
"""


def write(path, *arguments):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), *map(str, arguments)])


def test_two_processes_share_a_store(path):
    """Two processes create the file and write overlapping keys: every record is stored once."""
    writers = [write(path, 0, 150), write(path, 100, 250)]
    assert [writer.wait() for writer in writers] == [0, 0]
    with Store(path) as store:
        records = list(store.records(arrays=True))
    assert [record.seed for record in records] == list(range(250))
    for record in records:
        assert record.value("loss") == record.seed and np.all(record.arrays["w"] == record.seed)


def test_kill_nine_in_the_middle_of_a_transaction_loses_only_that_one(path):
    assert write(path, 0, 100, 30).wait() == -signal.SIGKILL
    with Store(path) as store:
        assert [record.seed for record in store.records()] == list(range(31))
        assert store._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert store._db.execute(
            "SELECT count(*) FROM arrays WHERE id = 'key-half.f'"
        ).fetchone() == (0,)
    assert write(path, 0, 100).wait() == 0
    with Store(path) as store:
        assert [record.seed for record in store.records()] == list(range(100))


def test_a_newer_schema_is_refused_and_left_alone(path):
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = path.read_bytes()
    for read_only in (True, False):
        with pytest.raises(StoreError, match=rf"newer unlazy \(store schema {SCHEMA_VERSION + 1}"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_foreign_database_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to have a header" * 50, b"x,y\n1,2\n"]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not an SQLite file, or it is damaged"):
        Store(path)
    assert path.read_bytes() == content


def test_a_truncated_store_is_reported(path):
    with Store(path) as store:
        for i in range(200):
            store.add(hand_record(f"{i}", loss=1.0, arrays={"w": np.ones(200)}))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StoreError, match="damaged"), Store(path, read_only=True) as store:
        list(store.records(arrays=True))


def test_a_schema_that_is_no_text_is_reported(path):
    Store(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE runs", b"CREATE \x80ABLE runs"))
    with pytest.raises(StoreError, match="damaged"):
        Store(path, read_only=True)


def test_a_full_disk_keeps_what_was_finished(path):
    with Store(path) as store:
        store.add(hand_record("a", loss=1.0))
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="disk is full"):
            store.add(hand_record("b", loss=2.0, arrays={"w": np.ones(100_000)}))
        assert store.known(["a.f", "b.f"]) == {"a.f"}
        store._db.execute("PRAGMA max_page_count = 1000000")
        assert store.add(hand_record("b", loss=2.0))


@pytest.mark.parametrize("read_only", [True, False])
def test_paths_that_cannot_be_used(tmp_path, read_only):
    (tmp_path / "file").touch()
    places = [tmp_path / "file" / "store.sqlite", tmp_path]
    if sys.platform == "linux":
        places.append(
            "/proc/unlazy-test/store.sqlite"
        )  # a folder that is not writable even for root
    for place in places:
        with pytest.raises(StoreError):
            Store(place, read_only=read_only)


def test_missing_records_are_reported(path):
    with Store(path) as store, pytest.raises(StoreError, match="no record of the trial nobody"):
        store.get("nobody")
    path.unlink()
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        Store(path, read_only=True)


def test_reading_never_creates(path):
    with pytest.raises(StoreError, match="There is no store"):
        Store(path, read_only=True)
    assert not path.exists()


def test_the_file_has_an_application_id(path):
    Store(path).close()
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
