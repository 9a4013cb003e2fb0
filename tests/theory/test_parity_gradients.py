import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from unlazy.core.errors import BadInput
from unlazy.theory.parity_gradients import MANY_SIGNS, FirstGradients, binomial_cdf, composition


def expanded(part, w, relevant):
    """E[z_j f σ'] for all coordinates of neurons with these weights."""
    found, inside = w * part.off[:, None], w[:, relevant]
    found[:, relevant] = np.select(
        [inside > 0, inside < 0],
        [part.on_plus[:, None], part.on_minus[:, None]],
        part.on_zero[:, None],
    )
    return found


def enumerated(w, relevant, b):
    """All expectations by listing all inputs."""
    n = len(w)
    z = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    f = np.prod(z[:, relevant], axis=1)
    s = z @ w / np.sqrt(n) + b
    slope, value = ((s > 0) & (s < 6)).astype(float), np.clip(s, 0, 6)
    equal = np.all(z[:, relevant] == z[:, relevant][:, :1], axis=1)
    weights = (np.full(len(z), 1 / len(z)), equal / np.sum(equal))
    return (
        [(z * (p * f * slope)[:, None]).sum(0) for p in weights],
        [p @ (f * slope) for p in weights],
        [p @ (f * value) for p in weights],
    )


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(3, 12),
    half=st.integers(0, 3),
    bias=st.sampled_from([1 / 24, -1 / 24, 0.3, 1 / 56]),
    data=st.data(),
)
def test_gradients_equal_enumeration(n, half, bias, data):
    k = min(2 * half + 1, n if n % 2 else n - 1)
    w = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n)))
    relevant = np.isin(np.arange(n), data.draw(st.permutations(range(n)))[:k])
    gradients, biases, outputs = enumerated(w, relevant, bias)
    exact = FirstGradients(n, k, bias)
    rows = composition(w[None], relevant)
    for part, g, c, o in zip(
        (exact.uniform(*rows), exact.structured(*rows)), gradients, biases, outputs, strict=True
    ):
        assert np.allclose(expanded(part, w[None], relevant)[0], g, atol=1e-12)
        assert part.bias[0] == pytest.approx(c, abs=1e-12) and part.output[0] == pytest.approx(
            o, abs=1e-12
        )
    mixed = expanded(exact.of(w[None], relevant), w[None], relevant)[0]
    assert np.allclose(mixed, (gradients[0] + gradients[1]) / 2, atol=1e-12)


@pytest.mark.parametrize("n", [15, 16])
def test_gradients_equal_enumeration_up_to_sixteen_bits(n):
    draw = np.random.default_rng(n)
    relevant = np.isin(np.arange(n), draw.permutation(n)[:5])
    w = draw.integers(-1, 2, size=n)
    w[relevant] = np.where(w[relevant] == 0, 1, w[relevant])  # where nothing vanishes
    gradients, _, _ = enumerated(w, relevant, 1 / 40)
    assert np.allclose(
        expanded(FirstGradients(n, 5, 1 / 40).of(w[None], relevant), w[None], relevant)[0],
        sum(gradients) / 2,
        atol=1e-12,
    )


def test_gradients_agree_with_a_sample_in_high_dimension():
    n, k, count = 400, 3, 40_000
    draw = np.random.default_rng(0)
    relevant = np.arange(n) < k
    w = draw.integers(-1, 2, size=(6, n))
    z = draw.choice([-1.0, 1.0], size=(count, n))
    equal = np.arange(count) % 2 == 0
    z[equal, :k] = draw.choice([-1.0, 1.0], size=(equal.sum(), 1))
    f = np.prod(z[:, :k], axis=1)
    exact = expanded(FirstGradients(n, k, 1 / 24).of(w, relevant), w, relevant)
    for row, g in zip(w, exact, strict=True):
        s = z @ row / np.sqrt(n) + 1 / 24
        terms = z[:, :10] * (f * ((s > 0) & (s < 6)))[:, None]
        error = terms.std(0) / np.sqrt(count)
        assert np.all(np.abs(terms.mean(0) - g[:10]) < 4 * error + 1e-12)


def test_millions_of_bits_are_no_obstacle():
    found = FirstGradients(10**6, 7, 1 / 56).mixture(
        np.array([3]), np.array([3]), np.array([666_000])
    )
    assert (
        0.2 < found.on_plus[0] < 0.5 and found.off[0] == found.bias[0] == 0
    )  # one zero weight in A, and weights that cancel


def test_bad_sizes_are_refused():
    with pytest.raises(BadInput, match="k must be odd"):
        FirstGradients(10, 4, 0.1)
    with pytest.raises(BadInput, match="1 ≤ k ≤ n"):
        FirstGradients(5, 7, 0.1)
    with pytest.raises(BadInput, match="must be −1, 0 or 1"):
        composition(np.array([[2, 0, 1]]), np.array([True, False, False]))


def test_sums_of_many_signs_are_normal_with_corrections():
    """Just above the number of signs from which the expansion is used, versus the exact sum."""
    M = np.full(41, MANY_SIGNS + 1)
    c = M // 2 + np.round(np.linspace(-4, 4, 41) * np.sqrt(M) / 2)
    assert np.max(np.abs(binomial_cdf(c, M) - betainc(M - c, c + 1, 0.5))) < 1e-12
    assert (
        binomial_cdf(np.array([-1.0]), np.array([5]))[0] == 0
        and binomial_cdf(np.array([5.0]), np.array([5]))[0] == 1
    )
