"""Parallel map over threads: order, precision and number of cores."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import pytest

from unlazy.core import threads
from unlazy.core.threads import cores, in_threads


def test_results_come_in_the_order_of_the_items_whichever_thread_is_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    second_is_done = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second_is_done.wait(60), "the items did not run side by side"
        if item == 1:
            second_is_done.set()
        return item * item

    assert list(in_threads(work, range(5))) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("double", [False, True])
def test_threads_compute_in_the_precision_of_the_caller(
    count: int, double: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "cores", lambda: count)
    with jax.enable_x64(double):
        assert {
            str(found) for found in in_threads(lambda item: jnp.asarray(0.5 * item).dtype, range(4))
        } == {f"float{32 << double}"}


def test_an_error_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda item: 1 / item, [1, 0]))


def test_nproc_limits_cores_but_does_not_invent_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    there_are = cores()
    assert there_are >= 1
    monkeypatch.setenv("NPROC", "1")
    assert cores() == 1
    monkeypatch.setenv("NPROC", str(there_are + 7))
    assert cores() == there_are
    monkeypatch.setenv("NPROC", "many")
    assert cores() == there_are
