"""Packed bits of many examples: one row of 64-bit words per input or gate, one bit per example.

A gate on 64 examples takes a few word operations, and counting is a population count.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

Words = np.ndarray  # uint64, one row of words per input or gate
WORD = 64
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Rounds on all words; later rounds process only the few undecided words.
FULL_ROUNDS = 8
#: Words per block, small enough for the cache of a core.
BLOCK = 1 << 14
#: Number of binary digits of a probability that are compared; the rest is below rounding.
DIGITS = 64


@dataclasses.dataclass(frozen=True)
class Packed:
    """`count` labeled examples: inputs `x`, one row of words per input, and labels `y`, one row.

    A set bit means +1.
    """

    x: Words
    y: Words
    count: int

    def first(self, count: int) -> Packed:
        """Return the first examples.

        Bits after them in their last word are not cleared; use `valid` to count.
        """
        return Packed(self.x[:, : words_for(count)], self.y[: words_for(count)], count)


def words_for(count: int) -> int:
    """Return the number of words that hold one bit of each of `count` examples."""
    return -(-count // WORD)


def pack(bits: np.ndarray) -> Words:
    """Pack Booleans with one example per row: `(count, rows)` to `(rows, words)`.

    Unused bits are zero.
    """
    columns = np.ascontiguousarray(np.asarray(bits, bool).T)
    packed = np.packbits(columns, axis=-1, bitorder="little")
    padding = words_for(columns.shape[-1]) * 8 - packed.shape[-1]
    packed = np.concatenate([packed, np.zeros((*packed.shape[:-1], padding), np.uint8)], axis=-1)
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64, copy=False)


def unpack(words: Words, count: int) -> np.ndarray:
    """Unpack words to Booleans with one example per row."""
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=count, bitorder="little").astype(bool).T


def valid(count: int) -> Words:
    """Return one row of words whose first `count` bits are set."""
    row = np.full(words_for(count), FULL)
    if count % WORD:
        row[-1] = np.uint64((1 << (count % WORD)) - 1)
    return row


def masks(flags: np.ndarray, words: int = 1) -> Words:
    """Return rows of words, all ones if a flag is set and zero otherwise.

    NumPy is several times as fast on rows as on a broadcast column.
    """
    return np.repeat(
        np.where(np.asarray(flags, bool), FULL, np.uint64(0))[..., None], words, axis=-1
    )


def random_words(rng: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Draw words of uniform bits."""
    return rng.bit_generator.random_raw(math.prod(shape)).reshape(shape)


def row_blocks(rows: int, words: int) -> list[slice]:
    """Return slices of rows that hold about `BLOCK` words each."""
    size = max(1, BLOCK // max(words, 1))
    return [slice(start, start + size) for start in range(0, rows, size)]


def bernoulli_bits(rng: np.random.Generator, p: np.ndarray, words: int) -> Words:
    """Draw independent bits, those of row j set with probability p[j].

    A uniform number is compared with p digit by digit, for all bits of a word at once. A bit is
    decided at the first digit that differs, on average after two rounds. Words whose bits are all
    decided take no more random numbers.
    """
    p = np.asarray(p, float)
    drawn = np.empty((len(p), words), np.uint64)
    for rows in row_blocks(len(p), words):
        drawn[rows] = _bernoulli_bits(rng, p[rows], words)
    return drawn


def _bernoulli_bits(rng: np.random.Generator, p: np.ndarray, words: int) -> Words:
    drawn, open_bits = masks(p >= 1, words), masks((p > 0) & (p < 1), words)
    flat, open_flat = drawn.reshape(-1), open_bits.reshape(-1)
    rest, chosen = np.where((p > 0) & (p < 1), p, 0.0), None
    for round_ in range(DIGITS):
        digit, rest = 2 * rest >= 1, 2 * rest % 1
        if round_ < FULL_ROUNDS and rest.any():
            random_digit = random_words(rng, drawn.shape)
            ones = masks(digit, words)
            random_digit ^= ones
            # If the digits differ, the uniform number is below p if its own digit is 0.
            ones &= random_digit
            ones &= open_bits
            drawn |= ones
            open_bits &= ~random_digit
            continue
        chosen = np.flatnonzero(open_flat) if chosen is None else chosen[open_flat[chosen] != 0]
        if not len(chosen):
            break
        digits = masks(digit[chosen // words])[:, 0]
        random_digit = random_words(rng, chosen.shape) ^ digits
        flat[chosen] |= open_flat[chosen] & random_digit & digits
        open_flat[chosen] &= ~random_digit
        if not rest.any():  # no digits left: undecided bits are not below p
            break
    return drawn


def counts(left: Words, right: Words, y: Words, count: int) -> np.ndarray:
    """Return the counts of bit pairs and labels: `(gates, 4, 2)`.

    The pattern is 2·left + right; labels are −1, then +1.
    """
    keep = valid(count)
    positive = y & keep

    def number(words: Words) -> np.ndarray:
        result: np.ndarray = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
        return result

    table = np.empty((len(left), 4, 2), np.int64)
    for label, chosen in ((1, positive), (0, ~y & keep)):
        both, one, two = (number(bits & chosen) for bits in (left & right, left, right))
        total = int(number(chosen[None])[0])
        table[:, :, label] = np.stack(
            [total - one - two + both, two - both, one - both, both], axis=1
        )
    return table
