"""The lemmas' instruments at small sizes, against plain computations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.papers.shi2022.instruments import Drift, FirstGradient, SignalToNoise, _components, slope
from unlazy.papers.shi2022.table1 import PARITY, parity_task, verbatim
from unlazy.core.random import normal
from unlazy.tasks.dictionary.patterns import ParityMixture
from unlazy.papers.shi2022.constants import drift_bound, error_bound, lemma_15, theorem_26, theorem_34


def test_slope_is_the_exponent():
    x = np.array([1.0, 2.0, 4.0])
    assert slope(x, 3 * x**-1.5) == pytest.approx(-1.5)


def test_constants_of_the_general_theorem():
    general, plain = (
        f(k=5, m=300, T=600, gamma=0.25, sigma=5.0, **more) for f, more in ((theorem_34, {"D": 100, "p_min": 0.3}), (theorem_26, {}))
    )
    assert general.noise == pytest.approx(5**-1.5) and general.w_scale == pytest.approx(5 / 30_000)
    assert general.first == pytest.approx(plain.first * 0.3 / 5)
    assert (general.second, general.rest, general.a_scale) == (plain.second, plain.rest, plain.a_scale)


def test_bounds_by_hand():
    assert error_bound(k=2, m=8, T=4) == pytest.approx(256 / 4 + 8 * 4 / 64 + 4 * 4 / 4)
    assert drift_bound(steps=10, rate=0.1, a_start=2.0) == pytest.approx(3.0)
    bound = lemma_15(D=100, k=5, m=8, po=0.5, sigma=5.0)
    assert bound.background == pytest.approx(0.01 * bound.error * 5) and bound.relevant == pytest.approx(bound.error / 5)


def test_components_of_the_first_gradient_equal_plain_averages():
    """The exact average over each background pattern agrees with the plain average over many examples."""
    family, key = ParityMixture(d=6, D=6, k=3), jax.random.key(0)
    on, off, beta = _components(family, 2, 20_000, 0.5, 0.2, 0.3, key)
    key_task, _, key_w, key_b = jax.random.split(key, 4)
    task = family.task(key=key_task)
    z, y = task.draw(200_000, jax.random.key(9))
    z = z[:, jnp.argsort(~task.relevant)]
    w, b = 0.5 * normal(key_w, (2, 6)), 0.2 * normal(key_b, (2,))
    noise = 0.3 * normal(jax.random.key(8), (200_000, 2))
    u = z @ w.T + b
    active = ((u + noise > 0) & (u + noise < 1)).astype(float)
    plain = jnp.einsum("n,nj,ni->ij", y, z, active) / len(y)
    np.testing.assert_allclose(on, plain[:, :3], atol=0.008)
    np.testing.assert_allclose(off, plain[:, 3:], atol=0.004)
    rest = z[:, 3:] @ w[:, 3:].T + b + noise
    np.testing.assert_allclose(beta, jnp.mean((rest > 0) & (rest < 1), axis=0), atol=0.01)


def test_signal_stands_out_of_the_first_gradient():
    found = FirstGradient((16, 32), n=2000, neurons=4).measure(key=jax.random.key(0))
    assert np.all(found["relevant"] > 5 * found["background"]) and np.all(found["relevant_ratio"] < 1)


def test_the_second_step_improves_the_weights():
    found = SignalToNoise((4096, 65_536), m=4).measure(key=jax.random.key(0))
    assert found["second"][1] > found["first"][1] and found["second"][1] > 2 * found["second"][0]
    assert np.all(found["inside"] == 1)


def test_weights_drift_less_than_the_bound():
    size = PARITY["smoke"]
    schedule = verbatim(size)
    drift = Drift(schedule.network((2, 3, 10)), parity_task(size), size.n, schedule.w_rate)
    assert drift.steps == (3, 10, 40)
    found = drift.measure(key=jax.random.key(0))
    assert np.all(found["weights"] > 0) and np.all(np.diff(found["weights"]) > 0)
    assert found["ratio"][-1] <= 1
    with pytest.raises(BadInput, match="from step 2 on"):
        Drift(schedule.network((0, 2)), parity_task(size), size.n, 0.1)
