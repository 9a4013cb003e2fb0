"""Engines with workers, without processes: order of work, lost workers, trials that kill their
worker, memory, and messages.
"""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from faulty import Job
from toys import BitCount, hand_record, toy_trial
from unlazy.core.errors import BadInput
from unlazy.lab.costs import Cost, Costs, kind_of
from unlazy.lab.engines.base import NullCallback
from unlazy.lab.engines.choice import engine_named
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.engines.pools import messages, work
from unlazy.lab.engines.pools import queue as queues
from unlazy.lab.engines.pools.engine import Lost, Pool, PoolEngine, Returned
from unlazy.lab.engines.pools.queue import JobQueue, chunks_in
from unlazy.lab.engines.pools.slurm import minutes, resources_of, slurm_engine
from unlazy.lab.provenance import Fingerprint, provenance
from unlazy.lab.trials import Failure, Measurement, Record


class FakePool(Pool):
    """Workers in this process.

    A worker dies if it receives a trial with a seed in `deadly`, and in the first `accidents` jobs.
    """

    def __init__(self, count=2, deadly=(), accidents=0):
        self.names, self.sent, self.deadly, self.accidents = (
            [f"w{index}" for index in range(count)],
            {},
            set(deadly),
            accidents,
        )
        self.deaths, self.order, self.abandoned = 0, [], []

    def open(self, memory):
        pass

    @property
    def workers(self):
        return self.names

    def send(self, worker, message):
        assert worker not in self.sent
        self.sent[worker] = message

    def news(self, timeout):
        worker, message = next(iter(self.sent.items()))
        del self.sent[worker]
        seeds = [trial.seed for trial in messages.unpacked(message).trials]
        self.order.append(seeds)
        if self.deadly & set(seeds) or self.accidents > 0:
            self.accidents -= 1
            self.deaths += 1
            self.names[self.names.index(worker)] = f"{worker}'"
            return [Lost(worker, "it killed its worker")]
        return [Returned(worker, work.run_job(message))]

    def abandon(self, workers):
        self.abandoned += workers

    def close(self):
        pass


def outcomes(pool, trials, memory=2 << 30):
    cheap = Costs([Cost(kind_of(trial), 1.0, 1e-3) for trial in trials[:1] if trial.on_host])
    found = list(PoolEngine(pool, 2, memory, cheap).run(trials, NullCallback()))
    ids = [one.id for one in found]
    assert len(set(ids)) == len(ids), "none twice"
    return {one.id: one for one in found}


def same_numbers(found, trials):
    wanted = {record.id: record for record in LocalEngine().run(trials)}
    assert found.keys() == wanted.keys()
    for key, record in wanted.items():
        np.testing.assert_equal(found[key].measurements, record.measurements)
        assert found[key].trial == record.trial and found[key].steps == record.steps
        for name, array in record.arrays.items():
            np.testing.assert_array_equal(found[key].arrays[name], array)


def test_numbers_are_those_of_the_local_engine_bit_by_bit():
    trials = [toy_trial(seed, rate) for seed in range(2) for rate in (0.1, 0.5)] + [
        Measurement(BitCount((10, 20)), s) for s in range(3)
    ]
    same_numbers(outcomes(FakePool(), trials), trials)


def test_chunks_of_lost_workers_are_run_again():
    trials = [Measurement(Job(), seed) for seed in range(6)]
    pool = FakePool(accidents=1)
    same_numbers(outcomes(pool, trials), trials)
    assert pool.deaths == 1


def test_a_trial_that_kills_its_worker_fails_alone():
    trials = [Measurement(Job(), seed) for seed in range(16)]
    pool = FakePool(deadly=[5])
    found = outcomes(pool, trials)
    failed = [one for one in found.values() if isinstance(one, Failure)]
    assert [failure.trial["seed"] for failure in failed] == [
        5
    ] and "killed its worker (3 times, run alone)" in failed[0].reason
    same_numbers(
        {key: one for key, one in found.items() if isinstance(one, Record)},
        [trial for trial in trials if trial.seed != 5],
    )
    assert pool.deaths == 2 + 3 + 3, (
        "twice whole, once for each half of 8, 4 and 2, three times alone"
    )


def test_an_error_in_one_trial_does_not_affect_others():
    trials = [Measurement(Job(wrong=3), seed) for seed in range(5)]
    found = outcomes(FakePool(), trials)
    failed = [one for one in found.values() if isinstance(one, Failure)]
    assert [failure.trial["seed"] for failure in failed] == [3]
    assert failed[0].reason.startswith("RuntimeError: this seed is wrong (faulty.py, line")


def test_a_chunk_that_raises_is_halved_until_the_failing_trial_is_alone(monkeypatch):
    trials = [toy_trial(seed) for seed in range(4)]
    truly = LocalEngine.run_together

    def picky(self, chunk, size):
        if any(trial.seed == 2 for trial in chunk):
            raise ValueError("not this one")
        return truly(self, chunk, size)

    monkeypatch.setattr(LocalEngine, "run_together", picky)
    found = outcomes(FakePool(), trials)
    assert {one.trial["seed"]: type(one) for one in found.values()} == {
        0: Record,
        1: Record,
        2: Failure,
        3: Record,
    }


def test_too_little_memory_makes_smaller_chunks_or_a_failure(monkeypatch):
    trials = [toy_trial(seed) for seed in range(4)]
    found = outcomes(FakePool(), trials, memory=1)
    assert (
        all(
            isinstance(one, Failure) and "increase --memory" in one.reason for one in found.values()
        )
        and len(found) == 4
    )


def test_the_longest_chunk_is_first_and_a_worker_keeps_its_group():
    trials = [toy_trial(seed, d=d) for d in (3, 4, 5) for seed in range(2)]
    cost = {3: 1.0, 4: 5.0, 5: 2.0}
    queue = JobQueue(trials, lambda trial: cost[trial.family.d])
    first, second = queue.take(), queue.take()
    assert (first.trials[0].family.d, second.trials[0].family.d) == (4, 5)
    queue.again(first)
    assert queue.take([first.group]).trials == first.trials, "whose programs it has"


def test_host_trials_run_in_batches(monkeypatch):
    trials = [Measurement(Job(), seed) for seed in range(10)]
    assert [len(chunk.trials) for chunk in chunks_in(trials, lambda trial: 0.001)] == [10]
    assert [len(chunk.trials) for chunk in chunks_in(trials, lambda trial: 1.0)] == [2] * 5
    monkeypatch.setattr(queues, "MAX_BATCH", 4)
    assert [len(chunk.trials) for chunk in chunks_in(trials, lambda trial: 0.0)] == [4, 4, 2]


def test_closing_the_iterator_stops_what_runs():
    pool = FakePool()
    records = PoolEngine(pool, 2, 2 << 30).run([toy_trial(d=3), toy_trial(d=4)], NullCallback())
    next(records)
    records.close()
    assert len(pool.abandoned) == 1


def test_answers_are_plain_data_and_checked():
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(1, 2, 3), "empty": np.zeros((0, 2))}
    record = hand_record(
        "a", steps=range(2), loss=(1.0, float("nan")), arrays=arrays, details={"x": [1]}
    )
    failure = Failure("b", {"seed": 1}, "why", {"unlazy": "0"}, "2026")
    reply = messages.Reply(
        (record, dataclasses.replace(record, key="c", measurements={}, arrays={})),
        (failure,),
        "r",
        (3, 4),
        (1, 0.5),
        "h",
    )
    data = messages.written(reply)
    found = messages.read(data)
    assert found.failures == (failure,) and (
        found.raised,
        found.too_large,
        found.compiled,
        found.host,
    ) == ("r", (3, 4), (1, 0.5), "h")
    np.testing.assert_equal(found.records[0].measurements, record.measurements)
    np.testing.assert_equal(found.records[0].arrays, arrays)
    assert found.records[0].steps == record.steps and found.records[1].measurements == {}
    assert [each.id for each in found.records] == ["a.f", "c.f"]
    assert found.records[0].details == {"x": [1]}
    for place in range(0, len(data), 7):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(BadInput, match="is damaged"):
            messages.read(bytes(broken))
        with pytest.raises(BadInput, match="is damaged"):
            messages.read(data[:place])


def raised(message):
    return messages.read(work.run_job(message)).raised


def test_a_trial_that_differs_on_the_worker_is_rejected(monkeypatch):
    message = messages.packed([toy_trial()], 1, 2 << 30)
    monkeypatch.setattr(Fingerprint, "id", "another")
    assert "its code or its data are not those of the coordinator" in raised(message)


def test_versions_and_source_must_be_the_same():
    work.check_same(provenance() | {"machine": "another"}, "w")
    for name in ("jax", "source", "unlazy"):
        with pytest.raises(BadInput, match=f"worker w is rejected: it has {name} 0 instead of"):
            work.check_same(provenance() | {name: "0"}, "w")


def test_a_users_file_is_sent(tmp_path, monkeypatch):
    from unlazy.lab.registry import load_file

    file = tmp_path / "own.py"
    file.write_text("from toys import BitCount\n\n\nclass Own(BitCount):\n    pass\n")
    module = load_file(file)
    trial = Measurement(module.Own((10,)), 0)
    message = messages.packed([trial], 0, 2 << 30)
    monkeypatch.delitem(sys.modules, module.__name__)
    (record,) = messages.read(work.run_job(message)).records
    assert record.id == trial.id
    monkeypatch.delitem(sys.modules, module.__name__)


def test_resources_of_slurm_jobs_are_parsed():
    assert resources_of("partition=cpu, time=1:30:00,cpus-per-task=2") == {
        "partition": "cpu",
        "time": 90,
        "cpus_per_task": "2",
    }
    assert [minutes(text) for text in ("5", "1:00:00", "10:30", "1-00:00:00")] == [5, 60, 11, 1440]
    for text, said in (
        ("partion=cpu", "Did you mean 'partition'"),
        ("time", "NAME=VALUE"),
        ("time=soon", "A time must be"),
        ("time=0", "at least 1 minute"),
    ):
        with pytest.raises(BadInput, match=said):
            resources_of(text)


def test_engines_by_name(monkeypatch):
    with pytest.raises(BadInput, match="Did you mean 'processes'"):
        engine_named("proceses")
    with pytest.raises(BadInput, match="remove --workers"):
        engine_named("local", workers=2)
    with pytest.raises(BadInput, match="requires --engine slurm"):
        engine_named("dask", slurm="time=1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadInput, match=r"pip install 'unlazy\[dask\]'"):
        engine_named("dask")


def test_a_local_dask_cluster_refuses_connections_without_its_certificate():
    distributed = pytest.importorskip("distributed")
    from unlazy.lab.engines.pools.cluster import DaskPool

    pool = DaskPool(count=1)
    pool.open(2**30)
    try:
        address = pool._cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1") and pool.workers
        folder = Path(pool._certificates.name)
        assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0] * 4
        stranger = distributed.Security.temporary()  # certificates of another authority
        port = address.rpartition(":")[2]
        for name, security in ((address, stranger), (f"tcp://127.0.0.1:{port}", None)):
            with pytest.raises((OSError, TimeoutError, ValueError)):
                distributed.Client(name, security=security, timeout=2, set_as_default=False)
        if os.getuid() == 0:  # otherwise no other user can be tried
            assert read_by_another_user("/etc/passwd")
            assert not read_by_another_user(folder / "key.pem")
    finally:
        pool.close()
    assert not folder.exists()


def read_by_another_user(path):
    """Return what the user "nobody" can read of a file."""
    return subprocess.run(["cat", str(path)], user=65534, capture_output=True, cwd="/").stdout


def test_a_cluster_without_authentication_must_be_named_as_such():
    pytest.importorskip("distributed")
    with pytest.raises(
        BadInput, match=r"everybody who can reach it .* insecure\+tcp://10.0.0.5:8786"
    ):
        engine_named("tcp://10.0.0.5:8786")
    assert engine_named("insecure+tcp://10.0.0.5:8786") and engine_named("tls://10.0.0.5:8786")


def test_one_coordinator_waits_for_the_slurm_jobs_of_a_store(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr("shutil.which", lambda command: f"/usr/bin/{command}")
    one, two = (slurm_engine(str(tmp_path / "store.sqlite")) for _ in range(2))
    with one._alone(), pytest.raises(BadInput, match="Another coordinator waits"):
        list(two.run([toy_trial()]))
