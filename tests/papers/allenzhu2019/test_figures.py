"""Figures 2, 3 and 4 of allenzhu2019: arms, readings and measures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted
from unlazy.kernels.wide import NNGP, NTK
from unlazy.papers.allenzhu2019.computations import HandMade
from unlazy.papers.allenzhu2019.figure2 import EXAMPLES, LIMITS, over_widths
from unlazy.papers.allenzhu2019.figure3 import (
    BETAS,
    FIGURE3,
    FIGURE3_SIZES,
    WIDTH,
    by_beta,
    by_width,
)
from unlazy.papers.allenzhu2019.figure4 import (
    FIGURE4,
    FIGURE4_SIZES,
    PATIENCE,
    Figure4Size,
    ParityTraining,
    least_norm_ratio,
    parity_sgd,
)
from unlazy.papers.allenzhu2019.setting import initial
from unlazy.tasks.hierarchy import PairHierarchy, RealParity
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
    ],
)
def test_readings_of_figure_4_differ_in_initialization_and_epochs(name, w_scale, epochs):
    for learner in runs(name):
        (stage,) = learner.stages
        assert learner.init.w_scale == pytest.approx(w_scale) and stage.steps == 100 * epochs
    assert not FIGURE4.under(name).judged.departs


def test_longer_training_is_a_row_of_our_own():
    (stage,) = PATIENCE.arms("laptop")["SGD"].learner.stages
    assert PATIENCE.source == "ours" and stage.steps == 100 * 4_000


def test_figure_4b_is_checked_at_paper_scale():
    found = {check.quantity.arm for check in FIGURE4.checks_at("paper")}
    assert found == set(FIGURE4.arms("paper")) == set(FIGURE4.control_arms("paper"))
    assert {check.quantity.arm for check in FIGURE4.checks_at("laptop")} == set(
        FIGURE4.arms("laptop")
    )
    for run in FIGURE4.arms("paper")["SGD at d = 100"].arms.values():
        (stage,) = run.learner.stages
        assert (run.family.d, run.n, stage.batch, stage.steps) == (100, 50_000, 100, 800 * 500)


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


def keys(arm, seeds=(1500, 1501)):
    return {trial.key for trial in arm.trials(seeds)}


def test_figure_3_by_width_and_by_beta_share_the_checked_trials():
    arms = FIGURE3.arms("laptop")
    for trained, n in (("all", 1000), ("hidden", 2000)):
        for beta in BETAS:
            by_size = arms[by_width(trained, beta)].arms[WIDTH]
            assert keys(by_size) == keys(arms[by_beta(trained, n)].arms[round(100 * beta)])


def test_figure_3_searches_as_many_settings_where_nothing_is_learned():
    for scale in ("laptop", "paper"):
        for cells in FIGURE3_SIZES[scale].cells.values():
            assert cells[0.3] == cells[0.2]


def test_figure_3_shows_the_numbers_of_examples_of_experiment_1():
    for scale in ("laptop", "paper"):
        for trained, n in EXAMPLES.items():
            assert by_beta(trained, n) in FIGURE3.arms(scale)


def test_the_resnet_of_infinite_width_has_the_kernels_of_a_two_layer_network():
    """With entries N(0, 1/m) its kernels converge to those of depth 1 plus constants."""
    d, m, outputs = 6, 40_000, 3
    x = np.asarray(jax.random.rademacher(jax.random.key(0), (7, d)), np.float32)
    net = initial("3resnet", m)(d, outputs=outputs, key=jax.random.key(1))

    def off_mean(kernel):
        return kernel - kernel.mean()

    first, second = net.layers(x)
    conjugate = (first + second) @ (first + second).T

    jacobian = jax.jacobian(lambda network: network(x)[:, 0])(net)
    tangent = sum(
        (leaf.reshape(len(x), -1) @ leaf.reshape(len(x), -1).T)
        for leaf in jax.tree.leaves(jacobian)
    )
    for found, kind in ((conjugate, NNGP), (tangent, NTK)):
        expected = d * kind(1, w_variance=1.0, b_variance=1 / d)(x, x)
        scale = np.abs(off_mean(expected)).max()
        np.testing.assert_allclose(off_mean(found), off_mean(expected), atol=0.05 * scale)


def test_limits_of_figure_2_are_for_its_inputs():
    assert len(LIMITS) == 4
    for kernel in LIMITS.values():
        assert kernel.w_variance == 1 and kernel.b_variance == pytest.approx(1 / PairHierarchy().d)


def test_summaries_over_widths():
    table = {"test_squared_error": np.array([0.1, 3.0, 2.0, np.nan])}
    assert over_widths(np.array([20, 50, 100, 200]), table) == {
        "least_test_squared_error": 0.1,
        "wide_test_squared_error": np.inf,
    }
