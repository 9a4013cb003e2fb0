"""A short fault suite: processes on this machine, killed during their work.

`make test-slow` adds a cluster and trials that kill their worker; `make faults` is the long form.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

import faulty
from faulty import compare, expected, jobs, kill_at, start, stored, wait_until, workers_of
from toys import keep
from unlazy.core.errors import StoreError
from unlazy.lab import trials as trials_module
from unlazy.lab.engines.choice import engine_named
from unlazy.lab.maintenance import check
from unlazy.lab.store import Store
from unlazy.lab.trials import Failure, Measurement

COUNT, WAIT = 16, 0.05
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="workers are found through /proc"
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return expected(tmp_path_factory.mktemp("undisturbed"), COUNT, WAIT)


@pytest.mark.slow
def test_workers_and_coordinators_that_are_killed_lose_nothing(tmp_path, undisturbed):
    """Kill a worker, then the coordinator; the next one resumes. No process is left."""
    path, rng = tmp_path / "store.sqlite", random.Random(0)
    first = start("processes", path, COUNT, WAIT, workers=1)
    assert kill_at(first, path, 3, lambda: workers_of(first.pid), rng)
    wait_until(lambda: stored(path) >= 6)
    orphans = workers_of(first.pid)
    first.kill()
    first.wait()
    assert stored(path) < COUNT + 3, "it was killed in the middle"
    second = start("processes", path, COUNT, WAIT, workers=1)
    assert second.wait(120) == 0
    compare(path, undisturbed)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in orphans))


def test_sigterm_finishes_the_write_and_ends_cleanly(tmp_path, undisturbed):
    path = tmp_path / "store.sqlite"
    process = start("local", path, COUNT, WAIT)
    wait_until(lambda: stored(path) >= 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert check(path).problems == () and 2 <= stored(path) < COUNT + 3
    with Store(path) as store:
        keep(jobs(COUNT, WAIT), store, engine_named("local"))
    compare(path, undisturbed)


@pytest.mark.slow
def test_trials_that_kill_their_worker_fail_alone(tmp_path):
    """One trial kills its worker, one uses all memory, one raises: each fails alone."""
    trials = [Measurement(faulty.Job(greedy=3, wrong=4), seed) for seed in (0, 1, 5, 3, 4)]
    trials.append(Measurement(faulty.Job(deadly=2, claimed=10), 2))  # long enough to be sent alone
    with engine_named("processes", workers=1) as engine, Store(tmp_path / "store.sqlite") as store:
        keep(trials, store, engine)
        failures = {failure.trial["seed"]: failure.reason for failure in store.failures().values()}
        assert len(store.all_ids()) == 3 and failures.keys() == {2, 3, 4}, failures
        assert (
            "signal 9" in failures[2]
            and "MemoryError" in failures[3]
            and "this seed is wrong" in failures[4]
        )
        with pytest.raises(StoreError, match="could not be run: RuntimeError"):
            store.get(trials[4].id)
        keep(trials[:2], store, engine)
        assert "lost" in engine.summary


def test_two_coordinators_share_a_store(tmp_path, undisturbed):
    path = tmp_path / "store.sqlite"
    other = threading.Thread(target=faulty.coordinate, args=("local", str(path), COUNT, WAIT))
    other.start()
    faulty.coordinate("local", str(path), COUNT, WAIT)
    other.join()
    compare(path, undisturbed)


def test_a_clock_that_goes_backwards(tmp_path, undisturbed, monkeypatch):
    hours = iter(range(10_000, 0, -1))
    monkeypatch.setattr(trials_module, "now", lambda: f"2020-01-01T00:00:00.{next(hours):06}+00:00")
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        keep(jobs(COUNT, WAIT), store, engine_named("local"))
    compare(path, undisturbed)


def test_a_store_copied_in_the_middle_of_a_write(tmp_path, undisturbed):
    """A copy without its log is older but consistent, or it is refused."""
    path = tmp_path / "store.sqlite"
    for place in range(2):
        with Store(path) as store:
            keep(jobs(COUNT, WAIT)[: 5 * (place + 1)], store, engine_named("local"))
            copy = tmp_path / f"copy-{place}.sqlite"
            shutil.copy(path, copy)
        try:
            with Store(copy) as store:
                keep(jobs(COUNT, WAIT), store, engine_named("local"))
        except StoreError:
            continue
        compare(copy, undisturbed)


def test_a_full_disk_says_so_and_keeps_what_was_finished(tmp_path, undisturbed):
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        keep(jobs(COUNT, WAIT)[:4], store, engine_named("local"))
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="disk is full"):
            keep(jobs(COUNT, WAIT), store, engine_named("local"))
    with Store(path) as store:
        assert len(store.all_ids()) >= 4
        keep(jobs(COUNT, WAIT), store, engine_named("local"))
    compare(path, undisturbed)


def test_a_store_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    path = tmp_path / "store.sqlite"
    Store(path).close()
    with Store(path, read_only=True) as store, pytest.raises(StoreError, match="not writable"):
        store.add_failure(Failure("a", {}, "why", {}, "2026"))


@pytest.mark.slow
def test_dask_workers_and_schedulers_that_are_killed_lose_nothing(tmp_path, undisturbed):
    """Kill a worker of a manual cluster, then its scheduler; a new cluster resumes."""
    pytest.importorskip("distributed")
    path, rng = tmp_path / "store.sqlite", random.Random(1)
    with faulty.cluster(1) as there:
        first = start(there.address, path, COUNT, WAIT)
        assert kill_at(first, path, 2, lambda: [process.pid for process in there.workers], rng)
        there.hire()  # in its place
        wait_until(lambda: stored(path) >= 6)
        there.scheduler.kill()
        assert first.wait(120) != 0, "the coordinator says that its cluster is gone"
    assert check(path).problems == ()
    with engine_named("dask", workers=1) as engine, Store(path) as store:
        keep(jobs(COUNT, WAIT), store, engine)
    compare(path, undisturbed)


def slurm_is_there():
    if shutil.which("sbatch") is None or shutil.which("sinfo") is None:
        return False
    done = subprocess.run(
        ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, timeout=20, check=False
    )
    return done.returncode == 0 and any(
        state in done.stdout for state in ("idle", "mixed", "allocated")
    )


@pytest.mark.skipif(
    not slurm_is_there(),
    reason="there is no SLURM here (scripts/one_node_slurm.sh start makes one)",
)
def test_a_slurm_job_that_is_cancelled_and_a_coordinator_that_goes_away(tmp_path, undisturbed):
    pytest.importorskip("submitit")
    path = tmp_path / "store.sqlite"
    first = start("slurm", path, COUNT, WAIT)
    wait_until(lambda: stored(path) >= 1)
    first.kill()
    first.wait()
    subprocess.run(["scancel", "--name", faulty.job_names(path)], check=True)
    second = start("slurm", path, COUNT, WAIT)
    assert second.wait(180) == 0
    compare(path, undisturbed)
    assert [entry.name for entry in sorted((tmp_path / "store.sqlite.slurm").iterdir())] == [
        "lock",
        "logs",
    ], "nothing else is left"


def test_a_store_that_was_damaged_is_named(tmp_path):
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        keep(jobs(2, 0.0)[:2], store, engine_named("local"))
    db = sqlite3.connect(path)
    db.execute("UPDATE records SET measurements = x'00' WHERE id = (SELECT min(id) FROM records)")
    db.commit()
    db.close()
    (problem,) = check(path).problems
    assert "is damaged: its numbers are not" in problem
