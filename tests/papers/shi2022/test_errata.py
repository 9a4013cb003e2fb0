"""Each erratum is shown by a counterexample or a computation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from programs import drawn
from unlazy.papers.shi2022 import ERRATA
from unlazy.papers.shi2022.constants import lemma_20, theorem_26
from unlazy.papers.shi2022.explicit import explicit_general
from unlazy.papers.shi2022.queries import QueryDimension
from unlazy.papers.shi2022.setting import Assumptions, all_bits, gradients, mixture
from unlazy.tasks.dictionary.incoherent import GeneralParity


@pytest.mark.slow
def test_the_mixture_has_a_dependent_background_below_one_half():
    bits = all_bits(6)
    for po in (0.1, 0.3, 0.5):
        p = mixture(bits, 3, po)
        both = float(p @ (bits[:, 3] * bits[:, 4]))
        assert float(p @ bits[:, 3]) == pytest.approx(po) and both == pytest.approx(
            po / (4 * (1 - po))
        )
        assert (abs(both - po**2) < 1e-12) == (po == 0.5)
    half, less = (
        Assumptions(6, 3, po, examples=1000, precision=64).measure(key=jax.random.key(0))
        for po in (0.5, 0.3)
    )
    assert half["dependence"] < 1e-12 and less["dependence"] > 0.02
    assert half["rate"] < 1e-12 and less["rate"] < 1e-12 and less["gamma"] == pytest.approx(0.35)


@pytest.mark.slow
def test_the_gradient_of_the_bias_has_noise():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), np.sign(rng.normal(size=40))
    w, b, a, weight, noise = (
        rng.normal(size=(5, 3)),
        rng.normal(size=5),
        0.1 * rng.normal(size=5),
        np.full(40, 1 / 40),
        0.3,
    )

    def ramp(v):
        return v * jax.scipy.stats.norm.cdf(v / noise) + noise * jax.scipy.stats.norm.pdf(v / noise)

    def loss(w, b, a):
        u = x @ w.T + b[None, :]
        return jnp.mean(jnp.maximum(0, 1 - y * ((ramp(u) - ramp(u - 1)) @ a)))

    with jax.enable_x64(True):
        expected = [
            np.asarray(each) for each in jax.grad(loss, (0, 1, 2))(*map(jnp.asarray, (w, b, a)))
        ]
    for right, found in zip(expected, gradients(w, b, a, x, y, weight, noise), strict=True):
        np.testing.assert_allclose(found, right, atol=1e-12)
    assert (
        np.max(np.abs(gradients(w, b, a, x, y, weight, noise, printed=True)[1] - expected[1]))
        > 1e-4
    )


def test_the_largest_bias_grows_with_the_width():
    """Probability that all m biases are below 4/k²."""
    below = [math.exp(m * math.log1p(-2 * scipy.stats.norm.sf(4))) for m in (10**3, 10**5, 10**6)]
    assert below[0] > 0.9 and below[2] < 1e-20
    typical = math.sqrt(2 * math.log(10**6 / 0.05))
    assert math.exp(10**6 * math.log1p(-2 * scipy.stats.norm.sf(typical))) > 0.95


def test_inputs_are_longer_than_one_below_one_half():
    D, po = 100, 0.05
    sigma = math.sqrt(D * po * (1 - po))
    longest = np.full(D, (1 - po) / sigma)
    assert (
        np.linalg.norm(longest) == pytest.approx(math.sqrt((1 - po) / po))
        and np.linalg.norm(longest) > 4
    )
    # In the linear part, moving w along x by 0.01 changes ⟨w, x⟩ by 0.01·‖x‖.
    change = 0.01 * longest / np.linalg.norm(longest)
    assert change @ longest > 4 * np.linalg.norm(change)
    assert np.linalg.norm(np.full(D, 0.5 / math.sqrt(D / 4))) == pytest.approx(1)  # po = 1/2


def test_the_theorem_and_its_lemma_set_different_constants():
    k, D, gamma = 25, 2500, 0.25
    sigma, m = math.sqrt(D) / 2, D
    theorem = theorem_26(k=k, m=m, T=100, gamma=gamma, sigma=sigma)
    lemma_rate = gamma**2 * sigma / (k * m**3)
    assert theorem.first == pytest.approx(sigma * lemma_rate) and theorem.noise == pytest.approx(
        k**-1.5 / math.sqrt(k)
    )
    errors = [
        lemma_20(D=D, k=k, m=m, sigma=sigma, gamma=gamma, eta=eta, a=1.0, noise=noise).error
        for eta, noise in ((lemma_rate, k**-1.5), (theorem.first, theorem.noise))
    ]
    assert errors[1] / errors[0] == pytest.approx(sigma * math.sqrt(k))
    assert theorem.first <= gamma / (k * m * theorem.a_scale)


def test_the_printed_class_is_the_opposite_of_the_product():
    found = QueryDimension(6, 3).measure(key=jax.random.key(0))
    assert found["labels"] == 0 and found["share"] == 1 and found["correlation"] == 0
    # For even k the product is +1 if no pattern is present.
    bits = all_bits(4)
    assert np.prod(2 * bits[0] - 1) == 1 and bits[0].sum() == 0


def test_correlated_patterns_add_to_the_variance():
    M = np.array([[1.0, 0.0], [0.5, math.sqrt(0.75)]])
    x = np.array([[0.0, 0.0], [1.0, 1.0]]) @ M  # both absent, both present
    assert np.sum(np.var(x, axis=0)) == pytest.approx(0.75) and 2 * 0.25 == 0.5


@pytest.mark.slow
def test_shifted_hats_have_weights_of_128k():
    family = GeneralParity(d=20, D=10, k=3, negative=0.5, coherence=0.0, noise=0.0)
    net = explicit_general(drawn(family, jax.random.key(0)))
    assert float(jnp.max(jnp.abs(net.a))) == pytest.approx(128 * 3)
    other = explicit_general(
        drawn(GeneralParity(d=20, D=10, k=3, negative=0.72, structure=0.9), jax.random.key(0))
    )
    assert float(jnp.max(jnp.abs(other.a))) in (pytest.approx(64 * 3), pytest.approx(128 * 3))


def test_the_mean_energy_is_the_trace():
    rho = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    q = np.linalg.cholesky(rho) @ np.random.default_rng(0).normal(size=(3, 100_000))
    assert np.mean(np.sum(q**2, axis=0)) == pytest.approx(3, abs=0.05) and np.sum(
        rho**2
    ) == pytest.approx(4.5)


@pytest.mark.parametrize(("C", "c"), [(1, 0.5), (5, 0.1), (20, 0.01)])
def test_gaussian_noise_exceeds_the_root_of_the_logarithm(C, c):
    """The tail beyond C√log k is larger than 10⁶·exp(−ck) for large k; that beyond √(2k) is at most
    exp(−k).
    """
    k = 1e7
    tail = math.log(2) + scipy.stats.norm.logsf(C * math.sqrt(math.log(k)))
    assert tail > math.log(1e6) - c * k
    assert all(2 * scipy.stats.norm.sf(math.sqrt(2 * k)) <= math.exp(-k) for k in range(1, 100))


def test_errata_name_existing_tests():
    names = [
        erratum.test.rpartition("::")[2] for erratum in ERRATA if "test_errata.py" in erratum.test
    ]
    assert set(names) <= set(globals()) and len(set(names)) == len(names) >= len(ERRATA) - 1
