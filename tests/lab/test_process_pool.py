"""The pool of worker processes: replacement of dead workers, with fake processes."""

import json

import pytest

from unlazy.core.errors import BadInput
from unlazy.lab.engines.pools import processes
from unlazy.lab.engines.pools.processes import MAX_FAILED_STARTS, ProcessPool


class StandIn:
    """A fake process whose messages the test provides."""

    def __init__(self, name, told):
        self.name, self.ready, self.reason = name, False, "it killed its worker (signal 9)"

    def kill(self):
        pass


@pytest.fixture
def pool(monkeypatch):
    monkeypatch.setattr(processes, "_Process", StandIn)
    monkeypatch.setattr(processes, "check_same", lambda facts, name: None)
    pool = ProcessPool(2)
    pool.open(0)
    return pool


def hears(pool, name, message):
    pool._inbox.put((name, message))
    return pool.news(0.0)


def test_failed_starts_are_reported(pool):
    for number in range(1, MAX_FAILED_STARTS + 1):
        hears(pool, f"worker {number}", None)
    with pytest.raises(BadInput, match="cannot be started"):
        hears(pool, f"worker {MAX_FAILED_STARTS + 1}", None)


def test_a_living_worker_continues_and_others_are_started_again(pool):
    hears(pool, "worker 1", json.dumps({}).encode())
    assert pool.workers == ["worker 1"]
    for number in range(2, 2 + MAX_FAILED_STARTS):
        hears(pool, f"worker {number}", None)
    assert list(pool._processes) == ["worker 1"], "no more are started for a while"
    hears(pool, "worker 1", None)
    (only,) = pool._processes
    hears(pool, only, json.dumps({}).encode())
    assert len(pool._processes) == 2 and pool.workers == [only]
