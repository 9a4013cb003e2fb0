"""Boolean circuits: packed bits versus one byte per bit in NumPy, and the time to learn a circuit
of 1024 inputs.

The peer draws with `Generator.random` and looks gates up in their tables, with one byte per bit.
Both process the same number of examples, in chunks of their best size.
"""

from __future__ import annotations

import jax
import numpy as np

from benchmarks.timing import Comparison, interleaved, say, seconds
from unlazy.learners.circuits.layerwise import StreamStatistics, learn_circuit
from unlazy.networks.tree import initial_tree, width_for
from unlazy.tasks.circuits.bits import random_words
from unlazy.tasks.circuits.circuit import TABLE, Circuit
from unlazy.tasks.circuits.distributions import GenerativeDistribution, stream
from unlazy.tasks.circuits.examples import random_circuit
from unlazy.tasks.circuits.recovery import PopulationStatistics, recovery

N = 1024
SAMPLE = 16_384
#: Examples per chunk: 256 words per row, or a thousand bytes per column.
CHUNK = {"packed": 16_384, "bytes": 1024}
ROUNDS = 3
TARGET = 20.0
#: Seconds allowed for learning with population statistics, and from 250,000 examples.
POPULATION_SECONDS, STREAM_SECONDS, STREAM = 5.0, 60.0, 250_000


def draw_bytes(circuit: Circuit, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from the generative distribution with one byte per bit: for each gate, a uniform pattern
    among those that give its value.
    """
    nodes = (rng.random((count, 1)) < 0.5).astype(np.int8)
    for gates in circuit.levels:
        table = TABLE[gates].astype(np.int8)
        order = np.argsort(table, axis=1, kind="stable").astype(
            np.int8
        )  # patterns that give 0, then those that give 1
        zeros = (4 - table.sum(axis=1)).astype(np.int8)
        first, size = np.where(nodes == 1, zeros, 0), np.where(nodes == 1, 4 - zeros, zeros)
        place = first + (rng.random(nodes.shape, np.float32) * size).astype(np.int8)
        pattern = order[np.arange(len(gates)), place]
        nodes = np.stack([pattern >> 1, pattern & 1], axis=2).reshape(count, -1)
    return nodes


def evaluate_bytes(circuit: Circuit, x: np.ndarray) -> np.ndarray:
    """Evaluate all gates by table lookup, with one byte per bit."""
    for gates in reversed(circuit.levels):
        x = TABLE.astype(np.int8)[gates, 2 * x[:, 0::2] + x[:, 1::2]]
    return x[:, 0]


def compare(what: str, ours, peer) -> Comparison:
    """Return the seconds for `SAMPLE` examples."""
    times = interleaved(
        {"packed": lambda: seconds(ours), "bytes": lambda: seconds(peer)}, ROUNDS, what
    )
    return Comparison(
        f"{what}: packed bits / NumPy int8, n = {N}",
        f"{SAMPLE:,} examples",
        times["packed"],
        times["bytes"],
        TARGET,
    )


def learning(circuit: Circuit, distribution: GenerativeDistribution) -> list[Comparison]:
    """Compare the seconds of learning with the target, after one run that compiles."""
    found = []
    for what, allowed, statistics in (
        (
            "population statistics",
            POPULATION_SECONDS,
            lambda: PopulationStatistics(circuit, distribution),
        ),
        (
            f"{STREAM:,} examples",
            STREAM_SECONDS,
            lambda: StreamStatistics(stream(circuit, distribution, STREAM, 7), N),
        ),
    ):
        tree = initial_tree(N, width_for(N, 0.001), key=jax.random.key(0))
        outcome = []

        def learn(statistics=statistics, tree=tree, outcome=outcome) -> None:
            outcome.append(
                learn_circuit(statistics(), tree, margin=(2 / 3) ** 10, rate="scaled").circuit
            )

        say(f"Learning a circuit of {N} inputs from {what}: first run {seconds(learn):.1f} s")
        took = seconds(learn)
        seen = recovery(circuit, distribution, outcome[-1])
        notes: dict[str, float | str] = {
            "gates recovered (%)": 100 * seen.share,
            "error (%)": 100 * seen.error,
            "seconds": round(took, 2),
        }
        found.append(
            Comparison(
                f"learning n = {N} from {what} / time allowed",
                "run",
                [took],
                [allowed],
                1.0,
                "lower",
                notes,
            )
        )
    return found


def run() -> list[Comparison]:
    """Run the benchmarks of evaluation, sampling and learning."""
    circuit = random_circuit(N, np.random.default_rng(0))
    distribution = GenerativeDistribution(circuit)
    fast, slow = np.random.Generator(np.random.SFC64(1)), np.random.Generator(np.random.SFC64(1))
    packed = [
        random_words(fast, (N, CHUNK["packed"] // 64)) for _ in range(SAMPLE // CHUNK["packed"])
    ]
    plain = [
        slow.integers(0, 2, (CHUNK["bytes"], N), np.int8) for _ in range(SAMPLE // CHUNK["bytes"])
    ]

    def both_packed() -> None:
        for _ in packed:
            circuit.output(distribution.draw(CHUNK["packed"], fast))

    def both_plain() -> None:
        for _ in plain:
            evaluate_bytes(circuit, draw_bytes(circuit, CHUNK["bytes"], slow))

    with jax.enable_x64(True):
        return [
            compare(
                "evaluation",
                lambda: [circuit.output(x) for x in packed],
                lambda: [evaluate_bytes(circuit, x) for x in plain],
            ),
            compare("sampling and evaluation", both_packed, both_plain),
            *learning(circuit, distribution),
        ]
