"""One test per erratum."""

import itertools
import math

import jax
import numpy as np
import pytest

from unlazy.papers.glasgow2023.clean import Neuron, clean_gradient
from unlazy.papers.glasgow2023.constructed import HeavyStep
from unlazy.papers.glasgow2023.errata import ERRATA
from unlazy.papers.glasgow2023.gradients import (
    CHERNOFF,
    PHASE2_RATE,
    SignSum,
    first_bounded,
    rotation_invariant_bound,
)
from unlazy.papers.glasgow2023.proof_computations import LossDerivatives
from unlazy.papers.glasgow2023.reduced import initial, margins, simulate
from unlazy.tasks.spectrum import corners


@pytest.mark.parametrize("seed", range(4))
def test_the_printed_sign_of_b4_is_wrong_and_the_corrected_one_exact(seed):
    """All 2¹⁰ points, the gradient written out; (B4) as a difference of two probabilities, in both
    orders.
    """
    rng = np.random.default_rng(seed)
    d, a = 10, (-1.0) ** seed * 0.7
    w, x = rng.normal(size=d), corners(d)
    first, second = abs(w[0] - w[1]) / math.sqrt(2), abs(w[0] + w[1]) / math.sqrt(2)
    signal, opposite = (first, second) if a > 0 else (second, first)
    descent = a * np.mean((-x[:, 0] * x[:, 1] * (x @ w > 0))[:, None] * x, axis=0)  # −∇_w L₀
    s, o = math.sqrt(2) * signal, math.sqrt(2) * opposite
    for i in range(2, d):
        distribution, size = SignSum(np.delete(w[2:], i - 2)), abs(w[i])
        near_signal, near_opposite = (
            distribution.between(s - size, s + size),
            distribution.between(o - size, o + size),
        )
        printed = abs(a) * size / 4 * (near_opposite - near_signal)
        assert w[i] * descent[i] == pytest.approx(-printed, abs=1e-12)
    assert np.max(np.abs(w[2:] * descent[2:])) > 0.001  # it is not that both are zero


def test_the_length_of_mu_matters():
    g = np.array([0.3, 1.0, 0.6, 1.4])
    found = clean_gradient(Neuron(1.0, 0.0, np.full(4, 1e-4), g))
    assert found.signal == pytest.approx(-PHASE2_RATE * g[0])  # along the unit vector
    assert math.sqrt(2) * found.signal == pytest.approx(-g[0] / 2)  # along μ itself
    # All neurons along μ₁ with |a| = ‖w‖ = √H: f(μ₁) = √2·H.
    for H in (1.5, 3.0, 6.0):
        slope = 2 / (1 + math.exp(math.sqrt(2) * H))
        assert math.exp(-math.sqrt(2) * H) <= slope < math.exp(-H)


def test_norms_decrease_although_squares_do_not_imply_it():
    weight = math.exp(6)
    (rest, opposite), (longer, shorter) = (0.001, 1.0), (0.01, 0.9)
    assert weight * longer**2 + shorter**2 < weight * rest**2 + opposite**2
    assert weight * longer + shorter > weight * rest + opposite
    with jax.enable_x64(True):
        assert HeavyStep(8, 64).measure(key=jax.random.key(0))["shape_rate"] < 0


def test_a_smaller_initial_scale_takes_longer_by_half_the_logarithm_of_the_width():
    """Reduced dynamics, d = 10⁴, p = 100: from θ/√p it takes ½·log(p)/τ longer until margins are 1.

    The additional growth is that of neurons with w = w_sig, so τ = √2/4.
    """
    d, p, theta, eta = 1e4, 100, 0.1, 0.1
    times = []
    for radius in (theta, theta / math.sqrt(p)):
        path = simulate(
            initial(p, d, radius, key=jax.random.key(0)), 420, eta, d=d, key=jax.random.key(1)
        )
        minimum = np.min(np.asarray(jax.jit(jax.vmap(margins))(path)), axis=1)
        times.append(eta * int(np.argmax(minimum > 1)))
    assert 0 < times[0] < times[1]
    assert times[1] - times[0] == pytest.approx(
        0.5 * math.log(p) / (math.log1p(eta * PHASE2_RATE) / eta), rel=0.05
    )


def test_inner_products_of_sign_vectors():
    d = 6
    assert sorted({int(v) for v in corners(d) @ corners(d)[5]}) == list(range(-d, d + 1, 2))
    assert rotation_invariant_bound(1008).error < 0.03 <= rotation_invariant_bound(1009).error


def test_the_lower_bound_is_at_least_three_percent_in_every_dimension_from_1009_on():
    """Every dimension up to 3,000 is computed; above 1,200, Chernoff's inequality suffices: the
    exponent divided by d decreases in d and is negative there.
    """
    assert first_bounded() == 1009
    assert all(rotation_invariant_bound(d).error >= 0.03 for d in range(1009, 3000))
    rate = 0.75 * (math.log(2) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2))

    def per_dimension(d):
        constant = math.log(10) - math.log(0.2)  # 10·β·(d + 1)^n ≤ 0.2 gives 0.0375·0.8 = 0.03
        return constant / d - rate + math.log(d + 1) / math.log(d) ** 2

    assert per_dimension(CHERNOFF) < 0
    found = [per_dimension(d) for d in np.geomspace(CHERNOFF, 1e12, 200)]
    assert all(later < earlier for earlier, later in itertools.pairwise(found))
    below = [d for d in range(930, 1009) if rotation_invariant_bound(d).error < 0.03]
    assert below == [*range(937, 950), 953, 1003, 1004, 1006, 1007, 1008]


def test_loss_derivatives_change_with_the_label():
    with jax.enable_x64(True):
        corrected = LossDerivatives(6, 20).measure(key=jax.random.key(0))["flipped_square"]
        printed = LossDerivatives(6, 20, printed=True).measure(key=jax.random.key(0))
    assert corrected <= 1 / 16 < 10 < printed["flipped_square"]


def test_every_erratum_names_a_test_of_this_file():
    for erratum in ERRATA:
        path, _, name = erratum.test.partition("::")
        assert path == "tests/papers/glasgow2023/test_errata_of_xor.py" and name in globals(), (
            erratum.id
        )
