"""Number of available cores, and a parallel map over threads.

XLA releases the Python lock while it computes. A loop over small matrices uses a single core, so
several such programs in parallel use all cores.
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
    """Return the number of cores that this process may use.

    This is the number given by the system, limited by the environment variable `NPROC` as in XLA.
    """
    given = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    asked = os.environ.get("NPROC", "")
    return max(1, min(given, int(asked))) if asked.isdigit() else given


def in_threads(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Apply `work` to each item in parallel threads and yield the results in order.

    Uses one thread per core, with the floating-point precision of the caller.
    """
    threads = min(cores(), len(items))
    if threads <= 1:
        yield from map(work, items)
        return
    double = jax.dtypes.canonicalize_dtype(np.float64) == np.float64

    def in_precision(item: Item) -> Result:
        with jax.enable_x64(double):  # a per-thread setting
            return work(item)

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(in_precision, items)
