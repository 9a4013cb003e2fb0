"""The Walsh–Hadamard transform of 2^20 numbers versus a NumPy loop over the butterfly stages.

Both use double precision and must agree up to rounding. The loop is also timed in its most
cache-friendly form, with even and odd indices instead of halves.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import Comparison, interleaved, seconds
from unlazy.theory.walsh import walsh_hadamard

M = 20
ROUNDS = 15
TARGET = 10.0


def by_stages(values: np.ndarray) -> np.ndarray:
    """Compute sums and differences of adjacent halves, stage by stage, in place."""
    v, half = values.copy(), 1
    while half < len(v):
        pairs = v.reshape(-1, 2, half)
        total, difference = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = total, difference
        half *= 2
    return v


def by_even_and_odd(values: np.ndarray) -> np.ndarray:
    """Compute sums and differences of even and odd indices: the same stages with equal strides."""
    v = values
    for _ in range(M):
        even, odd = v[0::2], v[1::2]
        v = np.concatenate([even + odd, even - odd])
    return v


def run() -> list[Comparison]:
    """Compare our transform with both loops."""
    values = np.random.default_rng(0).normal(size=1 << M)
    ours, peer = walsh_hadamard(values), by_stages(values)
    wrong = float(np.max(np.abs(ours - peer)) / np.max(np.abs(peer)))
    assert wrong < 1e-13, f"the transforms differ by {wrong:.1e}"
    assert np.allclose(by_even_and_odd(values), peer)
    times = interleaved(
        {
            "products": lambda: seconds(lambda: walsh_hadamard(values)),
            "stages": lambda: seconds(lambda: by_stages(values)),
            "even and odd": lambda: seconds(lambda: by_even_and_odd(values)),
        },
        ROUNDS,
        "Walsh–Hadamard",
    )
    against = sorted(
        slow / fast for slow, fast in zip(times["even and odd"], times["products"], strict=True)
    )
    notes: dict[str, float | str] = {
        "against the loop of equal strides": round(against[len(against) // 2], 1),
        "difference": f"{wrong:.0e}",
    }
    what = f"Walsh–Hadamard of 2^{M} numbers: small products / NumPy loop over stages"
    return [Comparison(what, "transform", times["products"], times["stages"], TARGET, notes=notes)]
