"""Laws of the inputs of a circuit: product, generative, mixtures of these, and weighted samples.
All draw packed bits.

Reference: malach2019, Definition 1 (product) and Section 5.2 (generative).
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
    coins,
    masks,
    pack,
    random_words,
    row_blocks,
    unpack,
    words_for,
)
from unlazy.tasks.circuits.circuit import NAMES, TABLE, Circuit, apply_form, normal_form

#: A source of examples that can be read again from the start, a chunk of bounded size at a time.
Stream = Callable[[], Iterator[Packed]]
#: Words that a chunk of a stream may take, about 16 MB.
CHUNK_WORDS = 1 << 21
#: Rounds of pairs of coins for all words, before only the undecided ones are looked at.
PAIR_ROUNDS = 5


class InputDistribution:
    """A distribution of the n inputs of a circuit."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of inputs."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Words:
        """Packed inputs of `count` independent examples."""


@dataclasses.dataclass(frozen=True)
class ProductDistribution(InputDistribution):
    """Independent inputs with P(x_j = +1) = p[j]."""

    p: np.ndarray

    def __post_init__(self) -> None:
        p = np.asarray(self.p, float)
        for place in np.flatnonzero(~((p >= 0) & (p <= 1)))[:1]:
            raise BadInput(f"P(x{place + 1} = 1) is a probability in [0, 1], but is {p[place]}.")
        object.__setattr__(self, "p", p)

    @property
    def n(self) -> int:
        return len(self.p)

    def draw(self, count: int, rng: np.random.Generator) -> Words:
        return coins(rng, self.p, words_for(count))


@dataclasses.dataclass(frozen=True)
class GenerativeDistribution(InputDistribution):
    """From the output down: the label is +1 with probability `positive`; each gate draws its two
    inputs uniformly from the patterns that give its value.

    Deviation: the text draws both cases from the patterns of output +1, and counts gates by another
    index; the second set is the complement.
    """

    circuit: Circuit
    positive: float = 0.5

    def __post_init__(self) -> None:
        require(
            0 <= self.positive <= 1,
            f"The share of positive labels lies in [0, 1], but is {self.positive}.",
        )
        for i, level in enumerate(self.circuit.levels):
            for j in np.flatnonzero((level == 0) | (level == 15))[:1]:
                raise BadInput(
                    f"Gate {j + 1} of level {i} is {NAMES[level[j]]}: a generative law needs "
                    "gates that take both values."
                )

    @property
    def n(self) -> int:
        return self.circuit.n

    def draw(self, count: int, rng: np.random.Generator) -> Words:
        """Packed inputs, one level after the other."""
        nodes = coins(rng, np.array([self.positive]), words_for(count))
        for level in self.circuit.levels:
            nodes = _patterns(level, nodes, rng)
        return nodes


def _patterns(gates: np.ndarray, values: Words, rng: np.random.Generator) -> Words:
    """Two inputs for each gate, uniform among those that give its value."""
    found = np.empty((2 * len(gates), values.shape[1]), np.uint64)
    for rows in row_blocks(len(gates), values.shape[1]):
        found[2 * rows.start : 2 * rows.stop : 2], found[2 * rows.start + 1 : 2 * rows.stop : 2] = (
            _pairs(gates[rows], values[rows], rng)
        )
    return found


def _pairs(gates: np.ndarray, values: Words, rng: np.random.Generator) -> tuple[Words, Words]:
    """The only pattern that gives the value, or pairs of coins, drawn until they give it."""
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
        # One pattern stands against three: what is undecided takes any pattern but that one, which
        # is found with fewer operations.
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
    """Each example from one of `laws`, chosen with probabilities `weights`."""

    weights: tuple[float, ...]
    distributions: tuple[InputDistribution, ...]

    def __post_init__(self) -> None:
        require(
            len(self.weights) == len(self.distributions) > 0,
            f"{len(self.weights)} weights for {len(self.distributions)} laws.",
        )
        require(
            min(self.weights) >= 0 and abs(sum(self.weights) - 1) < 1e-9,
            f"Weights are ≥ 0 and add up to 1, but are {self.weights}.",
        )
        require(
            len({distribution.n for distribution in self.distributions}) == 1,
            "All laws of a mixture have the same number of inputs.",
        )

    @property
    def n(self) -> int:
        return self.distributions[0].n

    def draw(self, count: int, rng: np.random.Generator) -> Words:
        """Packed inputs of all laws, of which each example keeps one."""
        left, open_bits = 1.0, np.full(words_for(count), ~np.uint64(0))
        found: Words = np.zeros(words_for(count), np.uint64)
        for weight, distribution in zip(self.weights, self.distributions, strict=True):
            here = (
                coins(
                    rng, np.array([min(1.0, weight / left) if left > 0 else 1.0]), words_for(count)
                )[0]
                & open_bits
            )
            found = found | (distribution.draw(count, rng) & here)
            open_bits, left = open_bits & ~here, left - weight
        return found


@dataclasses.dataclass(frozen=True)
class WeightedSample:
    """Given examples with weights that add up to one: Boolean inputs `(count, n)` and labels, True
    for +1.
    """

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        require(
            self.x.ndim == 2 and len(self.x) == len(self.y) == len(self.weights),
            "A sample has one label and one weight for each row.",
        )
        require(
            bool(np.all(self.weights >= 0)) and abs(float(np.sum(self.weights)) - 1) < 1e-9,
            "Weights are ≥ 0 and add up to 1.",
        )

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> WeightedSample:
        """Examples of equal weight; inputs and labels are ±1, or 0 and 1."""
        return cls(np.asarray(x) > 0, np.asarray(y) > 0, np.full(len(y), 1 / len(y)))

    @property
    def packed(self) -> Packed:
        """The examples without their weights."""
        return Packed(pack(self.x), pack(self.y[:, None])[0], len(self.y))


def draw(
    circuit: Circuit, distribution: InputDistribution, count: int, rng: np.random.Generator
) -> Packed:
    """Examples labelled by the circuit."""
    require(
        circuit.n == distribution.n,
        f"The circuit reads {circuit.n} inputs, the law draws {distribution.n}.",
    )
    x = distribution.draw(count, rng)
    return Packed(x, circuit.output(x), count)


def stream(
    circuit: Circuit, distribution: InputDistribution, count: int, seed: Sequence[int] | int
) -> Stream:
    """`count` examples that are drawn anew, and the same, at each reading: memory stays bounded
    however many they are.
    """
    size = max(64, 64 * (CHUNK_WORDS // circuit.n))

    def read() -> Iterator[Packed]:
        for index, start in enumerate(range(0, count, size)):
            rng = np.random.Generator(np.random.SFC64([*np.atleast_1d(seed).tolist(), index]))
            yield draw(circuit, distribution, min(size, count - start), rng)

    return read


def signs(packed: Packed) -> tuple[np.ndarray, np.ndarray]:
    """Inputs `(count, n)` and labels as ±1 in single precision."""
    x, y = unpack(packed.x, packed.count), unpack(packed.y[None], packed.count)[:, 0]
    return np.where(x, np.float32(1), np.float32(-1)), np.where(y, np.float32(1), np.float32(-1))
