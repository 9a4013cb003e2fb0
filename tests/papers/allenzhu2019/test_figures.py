"""Readings of Figures 3 and 4 of allenzhu2019, and their measures."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted
from unlazy.papers.allenzhu2019.computations import HandMade
from unlazy.papers.allenzhu2019.figure3 import FIGURE3, FIGURE3_SIZES
from unlazy.papers.allenzhu2019.figure4 import (
    FIGURE4,
    FIGURE4_SIZES,
    Figure4Size,
    ParityTraining,
    least_norm_ratio,
    parity_sgd,
)
from unlazy.tasks.hierarchy import RealParity
from unlazy.theory.minimal_norm import min_norm


def runs(name):
    """Return the runs of Figure 4 under a reading, at laptop scale."""
    return [arm.learner for arm in FIGURE4.under(name).arms("laptop")["SGD"].arms.values()]


@pytest.mark.parametrize(
    ("name", "w_scale", "epochs"),
    [
        ("as written", 200**-0.5, 800),
        ("initialization 0.1", 0.1, 800),
        ("doubled loss", 200**-0.5, 800),
        ("4,000 epochs", 200**-0.5, 4_000),
        ("initialization 0.1, 4,000 epochs", 0.1, 4_000),
    ],
)
def test_readings_of_figure_4_differ_in_initialization_and_epochs(name, w_scale, epochs):
    for learner in runs(name):
        (stage,) = learner.stages
        assert learner.init.w_scale == pytest.approx(w_scale) and stage.steps == 100 * epochs
    departs = FIGURE4.under(name).judged.departs
    assert bool(departs) == (epochs != 800), "only the number of epochs contradicts the text"


def test_figure_4_is_judged_as_written():
    assert FIGURE4.judged is FIGURE4.readings[0] and not FIGURE4.judged.departs


def test_a_loss_without_a_half_has_twice_the_rate_and_half_the_decay():
    """v ← 0.9·v + ∇(F − y)² + decay·p, then p ← p − rate·v."""
    n, rate, decay = 20, 0.5, 0.02
    size = Figure4Size(8, n, 6, n, (), (), 10, 100)
    learner = parity_sgd(size, (rate, decay), ParityTraining(epochs=4, doubled=True))
    task = drawn(RealParity(d=8, k=2), jax.random.key(0))
    trace = fitted(learner, task.sampler, n, jax.random.key(1))
    x, y = trace.seen
    net = learner.init(8, key=jax.random.split(jax.random.key(1), 3)[0])

    def loss(w):
        return jnp.mean((jnp.maximum(x @ w.T, 0) @ net.a - y) ** 2)

    gradient = jax.jit(jax.grad(loss))
    w, velocity = net.w, jnp.zeros_like(net.w)
    for step in range(4):
        velocity = 0.9 * velocity + gradient(w) + decay * w
        w = w - (rate if step < 2 else rate / 10) * velocity
    np.testing.assert_allclose(trace.at(-1).w, w, rtol=1e-4, atol=1e-5)


def test_the_norm_ratio_of_the_constructed_network_is_one():
    error, best = np.array([0.25, 0.04, 1.2]), min_norm(6)
    norms = best * (1 - np.sqrt(np.minimum(error, 1)))
    summary = least_norm_ratio(6)

    def ratio(norm):
        return summary(np.arange(3), {"train_squared_error": error, "norm": norm})

    assert ratio(norms)["least_norm_ratio"] == pytest.approx(1)
    # The third setting has learned nothing, so that its small norm does not count.
    assert ratio(norms * [4, 3, 0])["least_norm_ratio"] == pytest.approx(3)
    nothing = {"train_squared_error": np.ones(3), "norm": np.ones(3)}
    assert summary(np.arange(3), nothing)["least_norm_ratio"] == np.inf


def test_the_constructed_network_has_the_width_that_the_text_asks_for():
    """m ≥ 200; the closed form uses all neurons if m is a multiple of 64."""
    by_hand = FIGURE4.arms("laptop")["by hand"]
    assert by_hand.m >= FIGURE4_SIZES["laptop"].m == 200 and by_hand.m % 64 == 0
    wide, narrow = (HandMade(m=m).measure(key=jax.random.key(0))["error"] for m in (by_hand.m, 192))
    np.testing.assert_allclose(wide, narrow, atol=1e-12)


#: Digests of the trial keys of the first reading at laptop scale, seeds 1200 and 1201.
FIGURE3_KEYS = {
    "(all) N = 1,000": "89b1b48b96fbd180",
    "(hidden) N = 1,000": "86004fa3fb31aad0",
    "(hidden) N = 2,000": "b743ed20bfdf7884",
    "kα² = 1.35": "88ac39faed2d0015",
}


def test_the_first_reading_of_figure_3_has_the_trials_of_stored_results():
    found = {
        name: hashlib.sha256(" ".join(t.key for t in arm.trials([1200, 1201])).encode())
        for name, arm in FIGURE3.arms("laptop").items()
    }
    assert {name: each.hexdigest()[:16] for name, each in found.items()} == FIGURE3_KEYS


def test_readings_of_figure_3_change_examples_and_epochs_of_the_checked_arms():
    expected = {
        "as written": (1000, 2000, 800),
        "N of Experiment 1": (500, 1000, 800),
        "N = 500": (500, 500, 800),
        "N = 1,000": (1000, 1000, 800),
        "N = 2,000": (2000, 2000, 800),
        "400 epochs": (1000, 2000, 400),
    }
    assert list(expected) == [reading.name for reading in FIGURE3.readings]
    checked = {check.quantity.arm for check in FIGURE3.checks}
    for name, (n_all, n_hidden, epochs) in expected.items():
        claim = FIGURE3.under(name)
        for arms in (claim.arms("laptop"), claim.control_arms("laptop")):
            assert checked <= set(arms)
            sizes = {"(all) N = 1,000": n_all, "(hidden) N = 2,000": n_hidden}
            for arm, n in sizes.items():
                for chosen in arms[arm].arms.values():
                    for run in chosen.arms.values():
                        (stage,) = run.learner.stages
                        assert (run.n, stage.steps) == (n, epochs * n // 50)
    smoke = FIGURE3.under("400 epochs").arms("smoke")["(all) N = 1,000"].arms[0]
    assert FIGURE3_SIZES["smoke"].epochs["all"] == 1
    assert all(run.learner.stages[0].steps == 100 // 50 for run in smoke.arms.values())
