"""How many cores there are, and work that is spread over them by threads.

XLA leaves the Python lock while it computes, and a program of small matrices in a loop keeps one
core busy: several such programs side by side use them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax
import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use: those that the system gives it, but no more than the
    variable `NPROC` says, as to XLA.
    """
    given = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    asked = os.environ.get("NPROC", "")
    return max(1, min(given, int(asked))) if asked.isdigit() else given


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """What `work` makes of each item, in their order, as many at once as there are cores, in the
    precision of the caller.
    """
    threads = min(cores(), len(items))
    if threads <= 1:
        yield from map(work, items)
        return
    double = jax.dtypes.canonicalize_dtype(np.float64) == np.float64

    def in_precision(item: Item) -> Result:
        with jax.enable_x64(double):  # which is a setting of each thread
            return work(item)

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(in_precision, items)
