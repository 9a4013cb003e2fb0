import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlazy.tasks.circuits.bits import (
    bernoulli_bits,
    counts,
    pack,
    random_words,
    unpack,
    valid,
    words_for,
)


@given(st.integers(1, 200), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_packing_can_be_undone(count, rows, seed):
    bits = np.random.default_rng(seed).random((count, rows)) < 0.5
    words = pack(bits)
    assert words.shape == (rows, words_for(count)) and words.dtype == np.uint64
    np.testing.assert_array_equal(unpack(words, count), bits)
    assert np.all(words & ~valid(count) == 0)


@given(st.integers(1, 150), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_counts_equal_counting(count, seed):
    rng = np.random.default_rng(seed)
    bits, y = rng.random((count, 6)) < 0.5, rng.random(count) < 0.4
    words = random_words(
        rng, (6, words_for(count))
    )  # bits beyond the last example are noise that must not count
    keep = valid(count)
    words = (pack(bits) & keep) | (words & ~keep)
    found = counts(words[0::2], words[1::2], pack(y[:, None])[0], count)
    for gate in range(3):
        pattern = 2 * bits[:, 2 * gate] + bits[:, 2 * gate + 1]
        expected = [
            [np.sum((pattern == p) & (y == label)) for label in (False, True)] for p in range(4)
        ]
        np.testing.assert_array_equal(found[gate], expected)


def test_coins_have_their_probability_and_are_independent():
    p = np.array([0.0, 1.0, 0.5, 0.75, 0.6, 1e-3, 1 / 3])
    drawn = unpack(bernoulli_bits(np.random.Generator(np.random.SFC64(1)), p, 4000), 256_000)
    z = (drawn.mean(axis=0) - p) / np.sqrt(np.maximum(p * (1 - p), 1e-12) / len(drawn))
    assert np.all(np.abs(z) < 4.5)
    assert abs(np.corrcoef(drawn[:, 3], drawn[:, 4])[0, 1]) < 0.01
    assert abs(np.corrcoef(drawn[:-1, 4], drawn[1:, 4])[0, 1]) < 0.01


def test_the_same_generator_gives_the_same_coins():
    first, second = (
        bernoulli_bits(np.random.Generator(np.random.SFC64(7)), np.full(3, 0.3), 5)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert np.any(
        first != bernoulli_bits(np.random.Generator(np.random.SFC64(8)), np.full(3, 0.3), 5)
    )


@pytest.mark.parametrize("count", [1, 63, 64, 65])
def test_valid_bits(count):
    assert np.bitwise_count(valid(count)).sum() == count
