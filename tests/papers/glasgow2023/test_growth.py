import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, looked
from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.learners.base import Trace
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.glasgow2023.deviations import GradientDeviations
from unlazy.papers.glasgow2023.gradients import PHASE2_RATE, phase1_slope
from unlazy.papers.glasgow2023.growth import (
    EndOfPhaseOne,
    GrowthComparison,
    LayerBalance,
    MarginGrowth,
    SignalGrowth,
    TimeToLoss,
    slope_until,
)
from unlazy.papers.glasgow2023.sizes import Training
from unlazy.tasks.base import Batch
from unlazy.tasks.multi_index import MultiIndex

D, P, KEY = 16, 8, jax.random.key(1)
TASK = drawn(MultiIndex(d=D, where=(0, 1)), jax.random.key(0))
SEEN = Batch(jnp.zeros((1, D)), jnp.zeros(1))


def traced(w, a, steps):
    """Networks with first layers w (steps p d) and second layers a in mean-field scaling (steps
    p).
    """
    w, a = jnp.asarray(w, jnp.float32), jnp.asarray(a, jnp.float32)
    network = functools.partial(TwoLayer, activation="relu")
    models = jax.vmap(network)(w, jnp.zeros(a.shape), a / a.shape[1], jnp.zeros(len(a)))
    return Trace(models, jnp.zeros(len(a)), SEEN, steps)


def start(scale=1.0):
    w = scale * np.random.default_rng(0).normal(size=(P, D))
    return w, np.where(np.arange(P) % 2, 1.0, -1.0) * np.linalg.norm(w, axis=1)


def grown(rate, steps, signal=0.01):
    """Return neurons whose w_sig grows like e^{rate·t} and whose w_perp is constant."""
    w, a = start()
    w[:, :2] = (
        signal * np.array([1.0, -1.0]) * np.where(a > 0, 1, 0)[:, None]
        + signal * np.where(a > 0, 0, 1)[:, None]
    )
    path = np.repeat(w[None], len(steps), axis=0)
    path[:, :, :2] *= np.exp(rate * np.array(steps))[:, None, None]
    return traced(path, np.repeat(a[None], len(steps), axis=0), steps)


def test_a_planted_growth_is_found():
    """log‖w_sig‖ grows by the theory's rate: ratio 1, also if only the first steps count."""
    eta = 0.5
    rate = float(phase1_slope(eta)) * eta
    probe = SignalGrowth(radius=0.01, step=eta, ratio=4.0)
    for steps in ((0, 4, 8), (0, 4, 8, 20, 40)):
        found = looked(probe, TASK, grown(rate, steps), found={}, key=KEY)
        np.testing.assert_allclose(found["growth"], rate * np.array(steps), atol=1e-4)
        np.testing.assert_allclose(found["growth"], found["growth_theory"], atol=1e-4)
        np.testing.assert_allclose(found["slope_ratio"], 1, atol=1e-4)
        assert found["growth_ratio"][0] == 1 and found["margin_least_reduced"].shape == (
            len(steps),
        )
    np.testing.assert_allclose(found["time"], eta * np.array(steps))
    half = looked(probe, TASK, grown(rate / 2, (0, 4, 8)), found={}, key=KEY)
    assert half["slope_ratio"][0] == pytest.approx(0.5, abs=1e-3)


def test_weak_neurons_do_not_count():
    """A radius so large that no neuron is strong leaves no growth to speak of, rather than that of
    the others.
    """
    found = looked(
        SignalGrowth(radius=100.0, step=0.5, ratio=4.0),
        TASK,
        grown(0.1, (0, 4, 8)),
        found={},
        key=KEY,
    )
    assert np.all(np.isnan(found["growth"])) and found["strong"][0] == 0


def test_the_slope_uses_the_first_points_only():
    x = jnp.array([0.0, 1, 2, 3, 4])
    y = jnp.array([0.0, 2, 4, 100, -7])
    assert float(slope_until(x, y, 3)) == pytest.approx(2)


@pytest.mark.slow
def test_the_reduced_dynamics_follow_training():
    """At the size of a smoke run, growth along SGD is that of four numbers a neuron within a
    fifth.
    """
    run = Training(d=64, width=64, radius=0.3, step=0.4, batch=256)
    arm = run.arm((0, 8, 16))

    @jax.jit
    def look(key):
        task = arm.family.task(key=key)
        trace = arm.learner.fit(task.sampler, arm.n, key=key)
        return SignalGrowth(radius=run.radius, step=run.step, ratio=run.batch / run.d)(
            task, trace, found={}, key=key
        )

    np.testing.assert_allclose(look(jax.random.key(0))["growth_ratio"][1:], 1, atol=0.2)


@pytest.mark.slow
def test_margins_that_grow_as_stated_have_ratio_one():
    eta, steps, margins = 0.4, tuple(range(30, 44)), [0.5]
    for _ in steps[1:]:
        margins.append(margins[-1] * (1 + 2 * eta * PHASE2_RATE * 2 / (1 + math.exp(margins[-1]))))
    zeta = {
        "log10_zeta_plain": jnp.full(len(steps), -1.0),
        "H": jnp.ones(len(steps)),
        "zeta_met": jnp.arange(3.0, 3 + len(steps)),
    }
    found = {"margin_least": jnp.array(margins), "margin_greatest": 2 * jnp.array(margins)} | zeta
    got = looked(
        MarginGrowth(step=eta, looks=(0, 2, 99)), TASK, grown(0.0, steps), found=found, key=KEY
    )
    assert (
        got["least_ratio_2"][0] == got["least_ratio"][2]
        and got["least_ratio_99"][0] == got["least_ratio"][-6]
    )
    assert got["zeta_met_least"][0] == 3 and np.all(got["zeta_rise"][:-5] == 0)
    rising = found | {
        "log10_zeta_plain": jnp.log10(0.1 * jnp.exp(0.5 * jnp.arange(float(len(steps)))))
    }
    assert MarginGrowth(step=eta)(TASK, grown(0.0, steps), found=rising, key=KEY)["zeta_rise"][
        0
    ] == pytest.approx(0.5 / 0.4, rel=1e-3)
    np.testing.assert_allclose(got["least_ratio"][:-5], 1, atol=1e-4)
    assert np.all(np.isnan(got["least_ratio"][-5:])) and np.all(got["greatest_ratio"][:-5] > 1.05)
    np.testing.assert_allclose(got["spread"], 2)


def test_unbalanced_layers_are_detected():
    w, a = start()
    steps = tuple(range(7))
    first, second = np.repeat(w[None], 7, axis=0), np.repeat(a[None], 7, axis=0)
    quiet = LayerBalance(radius=1.0, step=0.4)(
        TASK, traced(first, second, steps), found={}, key=KEY
    )
    assert np.isnan(quiet["excess"][0]) and np.max(np.abs(quiet["excess"][1:])) < 1e-5
    second[4, 3] *= 1.5  # at step 4 only: |a| exceeds ‖w‖, and falling back at step 5 is a drift
    loud = looked(
        LayerBalance(radius=1.0, step=0.4), TASK, traced(first, second, steps), found={}, key=KEY
    )
    norm = np.linalg.norm(w[3])
    np.testing.assert_allclose(
        loud["excess"][1:], [0, 0, 0, norm / 2, norm / 2, norm / 2], atol=1e-5
    )
    np.testing.assert_allclose(
        loud["drift_ratio"][4:], [0, *[1.25 / (4 * 0.16 * 2.25)] * 2], atol=1e-4
    )


def test_the_end_of_phase_one_is_the_last_step_with_a_small_network():
    """Signal components grow until E‖a·w‖ > 1; the result is that of the step before."""
    steps = tuple(range(5))
    w, a = start()
    w[:, 2:] *= 0.05 / np.linalg.norm(w[:, 2:], axis=1, keepdims=True)
    w[:, :2] = 0.0
    sides = np.where(np.arange(P) % 4 < 2, 1.0, -1.0)
    direction = np.where(a[:, None] > 0, [1.0, -1.0], [1.0, 1.0]) / np.sqrt(2) * sides[:, None]
    path = np.repeat(w[None], 5, axis=0)
    path[:, :, :2] = np.array([0.1, 0.3, 0.9, 1.2, 2.0])[:, None, None] * direction
    second = np.sign(a) * np.linalg.norm(path, axis=2)
    probe = EndOfPhaseOne(radius=0.05, step=0.5, power=1.0)
    found = looked(probe, TASK, traced(path, second, steps), found={}, key=KEY)
    assert found["end_time"][0] == pytest.approx(0.5 * 2 / math.log(D)) and found["end_size"][
        0
    ] == pytest.approx(0.9**2 + 0.05**2, rel=1e-4)
    assert (
        found["end_share"][0] == 0.25
        and found["end_rest"][0] == pytest.approx(1, rel=1e-4)
        and abs(found["end_gap"][0]) < 1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("exponential", slow_but_first([False, True]))
def test_planted_linear_and_exponential_growth_are_distinguished(exponential):
    steps, eta, margin = tuple(range(12)), 0.3, 0.7
    clock = eta * PHASE2_RATE * 2 / (1 + math.exp(margin)) * np.arange(12)
    trace = grown(0.0, steps, signal=1.0)
    first = np.array(trace.models.w)
    first[:, :, 2:] *= 0.01
    size = np.linalg.norm(first[0, 0, :2])
    a = np.repeat(P * np.asarray(trace.models.a)[:1], 12, axis=0)
    a = np.sign(a) * 1.0
    scale = np.exp(clock) if exponential else (size + clock) / size
    first[:, :, :2] *= scale[:, None, None]
    found = {f"margin_{i + 1}": jnp.full(12, margin) for i in range(4)}
    got = looked(GrowthComparison(0, step=eta), TASK, traced(first, a, steps), found=found, key=KEY)
    assert got["members"][0] == 1 and got["clock"][0] == pytest.approx(clock[-1], rel=1e-4)
    right, wrong = (
        ("exponential_error", "linear_error")
        if exponential
        else ("linear_error", "exponential_error")
    )
    assert got[right][0] < 1e-5 < 0.01 < got[wrong][0]
    assert (got["preference"][0] < 0) == exponential


def test_the_time_to_a_loss_is_the_first_and_infinite_before():
    found = {"test_loss": jnp.array([1.0, 0.3, 0.05, 0.2])}
    share = TimeToLoss(0.1, step=0.5)(TASK, grown(0.0, (0, 2, 4, 6)), found=found, key=KEY)["share"]
    np.testing.assert_allclose(share, [np.inf, np.inf, *[0.5 * 4 / math.log(D)] * 2])


def test_a_gap_in_the_record_is_rejected():
    trace = grown(0.0, (0, 2, 3))
    with pytest.raises(BadInput, match="Every step"):
        LayerBalance(radius=1.0, step=0.4)(TASK, trace, found={}, key=KEY)
    with pytest.raises(BadInput, match="must be between"):
        MarginGrowth(step=0.4)(TASK, grown(0.0, (0, 1)), found={}, key=KEY)
    with pytest.raises(BadInput, match="first must be 0"):
        SignalGrowth(radius=1.0, step=0.4, ratio=1.0)(TASK, grown(0.0, (2, 3)), found={}, key=KEY)


def test_deviations_keep_the_lemmas_bounds_and_are_enumerated():
    """On all points of the cube, ∇L_ρ − ∇L₀ written out; a small network is closer to L₀ than a
    large one.
    """
    small, large = (traced(*(v[None] for v in start(scale)), (0,)) for scale in (0.05, 0.3))
    ratios = []
    for trace in (small, large):
        found = GradientDeviations(20_000)(TASK, trace, found={}, key=KEY)
        assert all(
            0 < float(found[name][0]) < 1
            for name in ("first_ratio", "second_ratio", "coordinate_ratio")
        )
        model = trace.at(0)
        x = 2.0 * ((np.arange(2**D)[:, None] >> np.arange(D)) & 1) - 1
        y, w, a = -x[:, 0] * x[:, 1], np.asarray(model.w, float), P * np.asarray(model.a, float)
        z = x @ w.T
        f = np.mean(a * np.maximum(z, 0), axis=1)
        gap = -2 * y / (1 + np.exp(y * f)) + y
        first = a[:, None] * (((z > 0) * gap[:, None]).T @ x) / len(x)
        size = np.mean(np.abs(a) * np.linalg.norm(w, axis=1))
        assert float(found["size"][0]) == pytest.approx(size, rel=1e-4)
        expected = np.max(np.linalg.norm(first, axis=1) / (2 * np.abs(a) * size))
        assert float(found["first_ratio"][0]) == pytest.approx(expected, rel=0.5)
        ratios.append(float(np.max(np.linalg.norm(first, axis=1))))
    assert ratios[0] < ratios[1]
    rotated = drawn(MultiIndex(d=D, rotated=True), jax.random.key(0))
    with pytest.raises(BadInput, match="not rotated"):
        GradientDeviations(10)(rotated, small, found={}, key=KEY)
