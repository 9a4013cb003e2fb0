"""Bits of many examples, packed 64 to a word: a row of words for each input or gate, an example for
each bit.

A gate on 64 examples is then a handful of word operations, and counting is a population count.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

Words = np.ndarray  # uint64, one row of words for each input or gate
WORD = 64
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Rounds in which every word is looked at before only the undecided ones are: about as many as
#: leave few words undecided.
FULL_ROUNDS = 8
#: Words that are worked on at a time, few enough for a core's cache.
BLOCK = 1 << 14
#: Binary digits of a probability that are compared: the rest is below the rounding of a double.
DIGITS = 64


@dataclasses.dataclass(frozen=True)
class Packed:
    """`count` labelled examples: inputs `x` with one row of words an input, and labels `y` as one
    row. A set bit means +1.
    """

    x: Words
    y: Words
    count: int

    def first(self, count: int) -> Packed:
        """The first examples.

        What is behind them in their last word is left there: whoever counts asks for `valid` bits.
        """
        return Packed(self.x[:, : words_for(count)], self.y[: words_for(count)], count)


def words_for(count: int) -> int:
    """Number of words that hold one bit of each of `count` examples."""
    return -(-count // WORD)


def pack(bits: np.ndarray) -> Words:
    """Words of Booleans with one example a row: `(count, rows)` to `(rows, words)`.

    Unused bits are zero.
    """
    columns = np.ascontiguousarray(np.asarray(bits, bool).T)
    packed = np.packbits(columns, axis=-1, bitorder="little")
    room = words_for(columns.shape[-1]) * 8 - packed.shape[-1]
    packed = np.concatenate([packed, np.zeros((*packed.shape[:-1], room), np.uint8)], axis=-1)
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64, copy=False)


def unpack(words: Words, count: int) -> np.ndarray:
    """Undo `pack`: Booleans with one example a row."""
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=count, bitorder="little").astype(bool).T


def valid(count: int) -> Words:
    """One row of words whose first `count` bits are set."""
    row = np.full(words_for(count), FULL)
    if count % WORD:
        row[-1] = np.uint64((1 << (count % WORD)) - 1)
    return row


def masks(flags: np.ndarray, words: int = 1) -> Words:
    """Rows of words, full where a flag is set and empty elsewhere.

    NumPy is several times as fast on rows as on a broadcast column.
    """
    return np.repeat(
        np.where(np.asarray(flags, bool), FULL, np.uint64(0))[..., None], words, axis=-1
    )


def random_words(rng: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Fair coins."""
    return rng.bit_generator.random_raw(math.prod(shape)).reshape(shape)


def row_blocks(rows: int, words: int) -> list[slice]:
    """Slices of rows that hold about `BLOCK` words each."""
    size = max(1, BLOCK // max(words, 1))
    return [slice(start, start + size) for start in range(0, rows, size)]


def coins(rng: np.random.Generator, p: np.ndarray, words: int) -> Words:
    """Independent bits, those of row j set with probability p[j].

    A uniform number is compared with p digit by digit, all bits of a word at once; a bit is decided
    at the first digit that differs, so two rounds decide a coin of 3/4, and words that are decided
    altogether take no more random numbers.
    """
    p = np.asarray(p, float)
    drawn = np.empty((len(p), words), np.uint64)
    for rows in row_blocks(len(p), words):
        drawn[rows] = _coins(rng, p[rows], words)
    return drawn


def _coins(rng: np.random.Generator, p: np.ndarray, words: int) -> Words:
    drawn, open_bits = masks(p >= 1, words), masks((p > 0) & (p < 1), words)
    flat, open_flat = drawn.reshape(-1), open_bits.reshape(-1)
    rest, chosen = np.where((p > 0) & (p < 1), p, 0.0), None
    for round_ in range(DIGITS):
        digit, rest = 2 * rest >= 1, 2 * rest % 1
        if round_ < FULL_ROUNDS and rest.any():
            coin = random_words(rng, drawn.shape)
            ones = masks(digit, words)
            coin ^= ones
            # Where the digits differ, the uniform number is below p if its own digit is 0.
            ones &= coin
            ones &= open_bits
            drawn |= ones
            open_bits &= ~coin
            continue
        chosen = np.flatnonzero(open_flat) if chosen is None else chosen[open_flat[chosen] != 0]
        if not len(chosen):
            break
        digits = masks(digit[chosen // words])[:, 0]
        coin = random_words(rng, chosen.shape) ^ digits
        flat[chosen] |= open_flat[chosen] & coin & digits
        open_flat[chosen] &= ~coin
        if not rest.any():  # no digit is left: what is still open is not below p
            break
    return drawn


def counts(left: Words, right: Words, y: Words, count: int) -> np.ndarray:
    """How often each pair of bits comes with each label: `(gates, 4, 2)`, pattern 2·left + right,
    label −1 then +1.
    """
    keep = valid(count)
    positive = y & keep

    def number(words: Words) -> np.ndarray:
        result: np.ndarray = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
        return result

    found = np.empty((len(left), 4, 2), np.int64)
    for label, chosen in ((1, positive), (0, ~y & keep)):
        both, one, two = (number(bits & chosen) for bits in (left & right, left, right))
        total = int(number(chosen[None])[0])
        found[:, :, label] = np.stack(
            [total - one - two + both, two - both, one - both, both], axis=1
        )
    return found
