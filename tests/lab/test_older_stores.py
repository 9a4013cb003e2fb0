"""Stores of earlier versions: read-only access does not change them, and their records count as
made by other code.
"""

import json
import sqlite3

import pytest

from toys import keep
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.maintenance import check, merge
from unlazy.lab.run import NullRunCallback
from unlazy.lab.schema import APPLICATION_ID, SCHEMA_VERSION, UNKNOWN
from unlazy.lab.serialization import dumps, pack
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Trial
from unlazy.learners.catalog import LEARNERS
from unlazy.probes.performance import Performance
from unlazy.tasks.multi_index import MultiIndex

VERSION_3 = """
CREATE TABLE records (
    key TEXT PRIMARY KEY, trial TEXT NOT NULL, status TEXT NOT NULL, steps TEXT NOT NULL,
    names TEXT NOT NULL, measurements BLOB NOT NULL, seconds REAL NOT NULL,
    provenance INTEGER NOT NULL REFERENCES provenance(id), created TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE arrays (
    key TEXT NOT NULL REFERENCES records(key), name TEXT NOT NULL, dtype TEXT NOT NULL,
    shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, name)
);
CREATE TABLE provenance (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
CREATE TABLE rules (
    claim TEXT NOT NULL, rule TEXT NOT NULL, registered TEXT NOT NULL, PRIMARY KEY (claim, rule)
) WITHOUT ROWID;
CREATE TABLE runs (
    kind TEXT NOT NULL, name TEXT NOT NULL, setting TEXT NOT NULL, first_seed INTEGER NOT NULL,
    seeds INTEGER NOT NULL, arms TEXT NOT NULL, created TEXT NOT NULL, outcome TEXT NOT NULL,
    PRIMARY KEY (kind, name, setting, first_seed, seeds)
) WITHOUT ROWID;
CREATE TABLE failures (
    key TEXT PRIMARY KEY, trial TEXT NOT NULL, reason TEXT NOT NULL,
    provenance INTEGER NOT NULL REFERENCES provenance(id), created TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE costs (
    kind TEXT NOT NULL, work REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (kind, work)
) WITHOUT ROWID;
INSERT INTO provenance VALUES (1, '{"unlazy":"0.0.1"}');
INSERT INTO rules VALUES ('c/1', 'x > 1', '2020');
INSERT INTO runs VALUES ('claim', 'c/1', 'smoke', 10, 1, '{"Arm":["old-0"]}', '2020', 'null');
INSERT INTO failures VALUES ('old-9', '{}', 'why', 1, '2020');
INSERT INTO costs VALUES ('k', 1.0, 2.0);
"""
#: Version 1 had only runs of claims, and neither failures nor costs.
VERSION_1 = """
DROP TABLE failures; DROP TABLE costs; DROP TABLE runs;
CREATE TABLE runs (
    claim TEXT NOT NULL, scale TEXT NOT NULL, first_seed INTEGER NOT NULL, seeds INTEGER NOT NULL,
    arms TEXT NOT NULL, created TEXT NOT NULL, PRIMARY KEY (claim, scale, first_seed, seeds)
) WITHOUT ROWID;
INSERT INTO runs VALUES ('c/1', 'smoke', 10, 1, '{"Arm":["old-0"]}', '2020');
"""
TRIALS = [
    Trial(MultiIndex(d=4), LEARNERS["linear"].value, 40, seed, (Performance(64),))
    for seed in range(2)
]
#: Values in the old store, which no run would measure.
VALUE = 12.25


@pytest.fixture(params=[1, 3])
def old(request, tmp_path):
    """Write a store of this version, with records under former keys."""
    path = tmp_path / "old.sqlite"
    db = sqlite3.connect(path)
    db.executescript(VERSION_3 + VERSION_1 * (request.param == 1))
    for trial in TRIALS:
        key, told = f"old-{trial.seed}", dumps(trial.describe())
        numbers = pack({"test_accuracy": (VALUE,)})
        row = (key, told, "ok", "[0]", '["test_accuracy"]', numbers, 0.5, 1, f"202{trial.seed}")
        db.execute("INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?)", row)
        array = (key, "w", "<f8", "[2]", b"\1" * 16)
        db.execute("INSERT INTO arrays VALUES (?,?,?,?,?)", array)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {request.param}")
    db.commit()
    db.close()
    return path


def check_content(store):
    """Check that records have current keys, and that runs refer to them."""
    ids = [f"{trial.key}.{UNKNOWN}" for trial in TRIALS]
    assert store._version == SCHEMA_VERSION and store.all_ids() == sorted(ids)
    record = store.get(ids[0])
    assert (record.fingerprint, record.value("test_accuracy")) == (UNKNOWN, VALUE)
    assert record.trial == json.loads(dumps(TRIALS[0].describe())) and len(record.arrays["w"]) == 2
    assert record.provenance == {"unlazy": "0.0.1"} and record.details is None
    run = Run("claim", "c/1", "smoke", 10, 1, {"Arm": [ids[0]]}, "2020")
    assert store.runs() == [run] and store.rules() == [("c/1", "x > 1", "2020")]
    assert store.find(TRIALS) == {} and store.failures() == {}
    found = store.find(TRIALS, arrays=True, reuse_older=True)
    assert found.keys() == {trial.id for trial in TRIALS}
    assert {each.value("test_accuracy") for each in found.values()} == {VALUE}


def test_an_old_store_is_read_without_being_changed(old):
    before = old.read_bytes()
    with Store(old, read_only=True) as store:
        check_content(store)
    assert check(old).problems == () and old.read_bytes() == before
    assert list(old.parent.iterdir()) == [old]


def test_an_old_store_is_changed_in_place_when_it_is_written_to(old):
    for _ in range(2):
        with Store(old) as store:
            check_content(store)
    assert check(old) == (2, 1, 0, ())


class Rounds(NullRunCallback):
    """Keeps the rounds of a run."""

    def __init__(self):
        self.seen = []

    def began(self, round):
        self.seen.append(round)


def test_of_several_records_that_are_one_trial_now_the_newest_stays(old):
    """For example of a user's class that was edited between two runs."""
    db = sqlite3.connect(old)
    copied = "replace(key, '-', '+'), trial, status, steps, names, measurements, seconds"
    db.execute(f"INSERT INTO records SELECT {copied}, provenance, '1999' FROM records")
    db.execute("INSERT INTO arrays VALUES ('old+0', 'surplus', '<f8', '[1]', zeroblob(8))")
    db.commit()
    db.close()
    with Store(old) as store:
        check_content(store)
        assert store.get(f"{TRIALS[0].key}.{UNKNOWN}").arrays.keys() == {"w"}


def test_old_records_are_used_only_on_request(old):
    callback = Rounds()
    with Store(old) as store:
        reused = keep(TRIALS, store, LocalEngine(), callback=callback, reuse_older=True)
        assert [record.value("test_accuracy") for record in reused] == [VALUE] * 2
        found = keep(TRIALS, store, LocalEngine(), callback=callback)
        assert [record.id for record in found] == [trial.id for trial in TRIALS]
        assert all(record.value("test_accuracy") != VALUE for record in found)
        assert len(store.all_ids()) == 4 and store.fingerprint(TRIALS[0].fingerprint.id)
    first, second = callback.seen
    assert (first.reused, first.stored, first.plan.trials) == (2, 2, 0)
    assert (second.outdated, second.stored, second.plan.trials) == (2, 0, 2)
    assert second.changed == ("records of an earlier version of the store",)


def test_an_old_store_is_merged_into_a_new_one(old, tmp_path):
    with Store(tmp_path / "new.sqlite") as store:
        found = merge(store, [old])
        assert (found.added, found.runs, found.damaged) == (2, 1, ())
        check_content(store)
