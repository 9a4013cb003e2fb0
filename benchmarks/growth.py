"""Growth of training time with width, dimension and batch size, and the fraction of the machine's
peak that a large network reaches.

A step of a two-layer network takes 2·batch·d·neurons multiply-adds, so each fitted exponent should
be 1 if matrix products dominate. A larger exponent shows an overhead that grows faster.
"""

from __future__ import annotations

import dataclasses
import statistics

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import EngineRun, Workload, use_own_program_cache

ROUNDS = 3
EXPECTED, ALLOWED = 1.0, 1.15
BASE = Workload("growth", nets=1, d=256, pairs=128, batch=256, n=4_096, steps=100)
ROWS = {"d": (256, 512, 1024), "pairs": (128, 256, 512), "batch": (256, 512, 1024)}
WORDS = {"d": "the dimension", "pairs": "the width", "batch": "the batch"}
#: Side of the square matrices whose product is the machine's peak.
SIDE = 2048
PEAK_TARGET = 0.35


def growth(field: str) -> Comparison:
    """Return the fitted exponent of a size in the training time, over the expected one."""
    sizes = ROWS[field]
    runs = {str(size): EngineRun(dataclasses.replace(BASE, **{field: size})) for size in sizes}
    for size, each in runs.items():
        say(f"Growth with {WORDS[field]}: compiling for {size} …")
        each()
    times = interleaved(runs, ROUNDS, f"Growth with {WORDS[field]}")
    powers = [
        float(np.polyfit(np.log(sizes), np.log([times[str(size)][index] for size in sizes]), 1)[0])
        for index in range(ROUNDS)
    ]
    what = f"power of {WORDS[field]} in the cost of training / expected: {sizes[0]} to {sizes[-1]}"
    return Comparison(
        what,
        "power",
        powers,
        [EXPECTED] * ROUNDS,
        ALLOWED,
        "lower",
        {"power": round(statistics.median(powers), 2)},
    )


def peak() -> Comparison:
    """Return the multiply-adds per second of a large network over those of a matrix product."""
    large = Workload("large", nets=1, d=1024, pairs=512, batch=1024, n=4_096, steps=60)
    ours = EngineRun(large)
    a = jnp.ones((SIDE, SIDE), jnp.float32)
    product = jax.jit(lambda x: x @ a)
    product(a).block_until_ready()
    say("Fraction of the peak: compiling …")
    ours()
    # The first layer and its gradient; inputs need no gradient, and the last layer is small.
    work = large.steps * 2 * large.batch * large.d * 2 * large.pairs
    times = interleaved(
        {"training": ours, "product": lambda: seconds(lambda: product(a).block_until_ready())},
        ROUNDS,
        "Fraction of the machine's peak",
    )
    return Comparison(
        "training of a large network / plain matrix product, multiply-adds a second",
        "multiply-add",
        [total / work for total in times["training"]],
        [total / SIDE**3 for total in times["product"]],
        PEAK_TARGET,
        notes={
            "peak (G multiply-adds a second)": round(
                SIDE**3 / statistics.median(times["product"]) / 1e9, 1
            )
        },
    )


def run() -> list[Comparison]:
    """Run all sizes, and the peak."""
    use_own_program_cache()
    return [*(growth(field) for field in ROWS), peak()]
