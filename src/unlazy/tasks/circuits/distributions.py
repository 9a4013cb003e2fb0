"""Input distributions of a circuit: product, generative, mixtures and weighted samples.

All draw packed bits. Reference: malach2019, Definition 1 (product) and Section 5.2 (generative).
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from unlazy.core.errors import BadInput, require
from unlazy.tasks.circuits.bits import (
    FULL,
    Packed,
    Words,
    bernoulli_bits,
    masks,
    pack,
    random_words,
    row_blocks,
    unpack,
    words_for,
)
from unlazy.tasks.circuits.circuit import NAMES, TABLE, Circuit, apply_form, normal_form

#: Source of examples in chunks of bounded size that can be read again from the start.
Stream = Callable[[], Iterator[Packed]]
#: Maximum number of words per chunk of a stream, about 16 MB.
CHUNK_WORDS = 1 << 21
#: Rounds of random pairs for all words; later rounds process only the undecided words.
PAIR_ROUNDS = 5


class InputDistribution:
    """Distribution of the n inputs of a circuit."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of inputs."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Words:
        """Draw packed inputs of `count` independent examples."""


@dataclasses.dataclass(frozen=True)
class ProductDistribution(InputDistribution):
    """Independent inputs with P(x_j = +1) = p[j]."""

    p: np.ndarray

    def __post_init__(self) -> None:
        p = np.asarray(self.p, float)
        for j in np.flatnonzero(~((p >= 0) & (p <= 1)))[:1]:
            raise BadInput(f"P(x{j + 1} = 1) must lie in [0, 1], got {p[j]}.")
        object.__setattr__(self, "p", p)

    @property
    def n(self) -> int:
        return len(self.p)

    def draw(self, count: int, rng: np.random.Generator) -> Words:
        return bernoulli_bits(rng, self.p, words_for(count))


@dataclasses.dataclass(frozen=True)
class GenerativeDistribution(InputDistribution):
    """Inputs generated from the output down.

    The label is +1 with probability `positive`. Each gate draws its two inputs uniformly from the
    patterns that give its value.

    Deviation: the text draws both cases from the patterns of output +1, and indexes gates
    differently; here the second set is the complement.
    """

    circuit: Circuit
    positive: float = 0.5

    def __post_init__(self) -> None:
        require(
            0 <= self.positive <= 1,
            f"positive (a probability) must lie in [0, 1], got {self.positive}.",
        )
        for i, level in enumerate(self.circuit.levels):
            for j in np.flatnonzero((level == 0) | (level == 15))[:1]:
                raise BadInput(
                    f"A generative distribution needs gates that take both values, got "
                    f"{NAMES[level[j]]} for gate {j + 1} of level {i}."
                )

    @property
    def n(self) -> int:
        return self.circuit.n

    def draw(self, count: int, rng: np.random.Generator) -> Words:
        """Draw packed inputs, level by level."""
        nodes = bernoulli_bits(rng, np.array([self.positive]), words_for(count))
        for level in self.circuit.levels:
            nodes = _patterns(level, nodes, rng)
        return nodes


def _patterns(gates: np.ndarray, values: Words, rng: np.random.Generator) -> Words:
    """Draw two inputs per gate, uniform among those that give its value."""
    result = np.empty((2 * len(gates), values.shape[1]), np.uint64)
    for rows in row_blocks(len(gates), values.shape[1]):
        (
            result[2 * rows.start : 2 * rows.stop : 2],
            result[2 * rows.start + 1 : 2 * rows.stop : 2],
        ) = _pairs(gates[rows], values[rows], rng)
    return result


def _pairs(gates: np.ndarray, values: Words, rng: np.random.Generator) -> tuple[Words, Words]:
    """Return the only pattern that gives the value, or random pairs by rejection sampling."""
    table, width = TABLE[gates], values.shape[1]
    left, right = np.zeros_like(values), np.zeros_like(values)
    undecided = np.full(values.shape, FULL)
    for value, words in ((1, values), (0, ~values)):
        fits = table == value
        single, pattern = fits.sum(axis=1) == 1, fits.argmax(axis=1)
        taken = words & masks(single, width)
        left |= taken & masks(pattern >= 2, width)
        right |= taken & masks(pattern % 2 == 1, width)
        undecided ^= taken
    ones = table.sum(axis=1)
    lopsided = bool(np.all(ones % 2 == 1))
    if lopsided:
        # One pattern against three: undecided bits take any of the three, which needs fewer
        # operations.
        lone = (table == (ones == 1)[:, None]).argmax(axis=1)
        first, second = masks(lone >= 2, width), masks(lone % 2 == 1, width)
    else:
        form = normal_form(gates, width)
    for _ in range(PAIR_ROUNDS):
        one, two = random_words(rng, (2, *values.shape))
        if lopsided:
            fits = one ^ first
            fits |= two ^ second
        else:
            fits = ~(apply_form(form, one, two) ^ values)
        fits &= undecided
        undecided ^= fits
        one &= fits
        left |= one
        two &= fits
        right |= two
    flat = [array.reshape(-1) for array in (left, right, undecided, values)]
    columns = [part[:, 0] for part in normal_form(gates, 1)]
    chosen = np.flatnonzero(flat[2])
    while len(chosen):
        one, two = random_words(rng, (2, len(chosen)))
        row = chosen // width
        fits = flat[2][chosen] & ~(
            apply_form([part[row] for part in columns], one, two) ^ flat[3][chosen]
        )
        flat[0][chosen] |= one & fits
        flat[1][chosen] |= two & fits
        flat[2][chosen] ^= fits
        chosen = chosen[flat[2][chosen] != 0]
    return left, right


@dataclasses.dataclass(frozen=True)
class MixtureDistribution(InputDistribution):
    """Mixture of `distributions` with probabilities `weights`."""

    weights: tuple[float, ...]
    distributions: tuple[InputDistribution, ...]

    def __post_init__(self) -> None:
        require(
            len(self.weights) == len(self.distributions) > 0,
            f"Each distribution needs one weight, got {len(self.weights)} weights for "
            f"{len(self.distributions)} distributions.",
        )
        require(
            min(self.weights) >= 0 and abs(sum(self.weights) - 1) < 1e-9,
            f"weights must be ≥ 0 with sum 1, got {self.weights}.",
        )
        require(
            len({distribution.n for distribution in self.distributions}) == 1,
            "All distributions of a mixture must have the same number of inputs.",
        )

    @property
    def n(self) -> int:
        return self.distributions[0].n

    def draw(self, count: int, rng: np.random.Generator) -> Words:
        """Draw packed inputs of all distributions, of which each example keeps one."""
        left, open_bits = 1.0, np.full(words_for(count), ~np.uint64(0))
        result: Words = np.zeros(words_for(count), np.uint64)
        for weight, distribution in zip(self.weights, self.distributions, strict=True):
            here = (
                bernoulli_bits(
                    rng, np.array([min(1.0, weight / left) if left > 0 else 1.0]), words_for(count)
                )[0]
                & open_bits
            )
            result = result | (distribution.draw(count, rng) & here)
            open_bits, left = open_bits & ~here, left - weight
        return result


@dataclasses.dataclass(frozen=True)
class WeightedSample:
    """Examples with weights of sum one: Boolean inputs `(count, n)` and labels, True for +1."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        require(
            self.x.ndim == 2 and len(self.x) == len(self.y) == len(self.weights),
            "A sample needs one label and one weight per row.",
        )
        require(
            bool(np.all(self.weights >= 0)) and abs(float(np.sum(self.weights)) - 1) < 1e-9,
            "weights must be ≥ 0 with sum 1.",
        )

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> WeightedSample:
        """Return examples of equal weight; inputs and labels are ±1, or 0 and 1."""
        return cls(np.asarray(x) > 0, np.asarray(y) > 0, np.full(len(y), 1 / len(y)))

    @property
    def packed(self) -> Packed:
        """The examples without their weights."""
        return Packed(pack(self.x), pack(self.y[:, None])[0], len(self.y))


def draw(
    circuit: Circuit, distribution: InputDistribution, count: int, rng: np.random.Generator
) -> Packed:
    """Draw examples labeled by the circuit."""
    require(
        circuit.n == distribution.n,
        f"The circuit has {circuit.n} inputs, but the distribution has {distribution.n}.",
    )
    x = distribution.draw(count, rng)
    return Packed(x, circuit.output(x), count)


def stream(
    circuit: Circuit, distribution: InputDistribution, count: int, seed: Sequence[int] | int
) -> Stream:
    """Return `count` examples that are drawn again, identically, at each reading.

    Memory stays bounded for any number of examples.
    """
    size = max(64, 64 * (CHUNK_WORDS // circuit.n))

    def read() -> Iterator[Packed]:
        for index, start in enumerate(range(0, count, size)):
            rng = np.random.Generator(np.random.SFC64([*np.atleast_1d(seed).tolist(), index]))
            yield draw(circuit, distribution, min(size, count - start), rng)

    return read


def signs(packed: Packed) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs `(count, n)` and labels as ±1 in single precision."""
    x, y = unpack(packed.x, packed.count), unpack(packed.y[None], packed.count)[:, 0]
    return np.where(x, np.float32(1), np.float32(-1)), np.where(y, np.float32(1), np.float32(-1))
