"""Exact computations and probes of allenzhu2019."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted
from toys import hand_record
from unlazy.kernels.catalog import kernel_named
from unlazy.lab.arms import Arm
from unlazy.lab.engines.local import LocalEngine
from unlazy.networks.inits import SignedInit
from unlazy.papers.allenzhu2019.computations import GeneralClass, GradientFormula, HandMade
from unlazy.papers.allenzhu2019.figure2 import FIGURE2A, SIZES_A, UNLEARNED, figure2
from unlazy.papers.allenzhu2019.forward import layer_wise
from unlazy.papers.allenzhu2019.lower_bounds import RankArgument, SpanRisk, allowed, degrees_of
from unlazy.papers.allenzhu2019.probes import FirstLayerNorm, LayerReadout, readout_r2
from unlazy.papers.allenzhu2019.setting import initial, momentum_sgd
from unlazy.probes.performance import Performance
from unlazy.report.figures import draw
from unlazy.report.training import claim_plot
from unlazy.tasks.hierarchy import PairHierarchy, RealParity


def test_steps_are_those_of_common_libraries():
    """v ← 0.9·v + ∇ + decay·p, then p ← p − rate·v."""
    n, rate, decay = 20, 0.05, 0.01
    learner = momentum_sgd("3resnet", "all", 6, n, (rate, decay), 4, batch=n)
    family = PairHierarchy(d=6, order=2)
    task = drawn(family, jax.random.key(0))
    trace = fitted(learner, task.sampler, n, jax.random.key(1))
    initialized = initial("3resnet", 6)(6, outputs=3, key=jax.random.split(jax.random.key(1), 3)[0])
    x, y = trace.seen

    def loss(net):
        return 0.5 * jnp.mean(jnp.sum((net(x) - y) ** 2, axis=1))

    gradient = jax.jit(jax.grad(loss))
    net, velocity = initialized, jax.tree.map(jnp.zeros_like, initialized)
    for step in range(4):
        grads = gradient(net)
        velocity = jax.tree.map(lambda v, g, p: 0.9 * v + g + decay * p, velocity, grads, net)
        current = rate if step < 2 else rate / 10
        net = jax.tree.map(lambda p, v, r=current: p - r * v, net, velocity)
    for leaf, expected in zip(jax.tree.leaves(trace.at(-1)), jax.tree.leaves(net), strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.slow
def test_readouts_find_linear_targets_and_no_others():
    key = jax.random.key(0)
    features = jax.random.normal(key, (2000, 8))
    targets = features[:, :2] @ jnp.array([[1.0, 2.0], [0.5, -1.0]])
    others = features[:, :1] * features[:, 1:2]
    assert readout_r2(features[:1000], targets[:1000], features[1000:], targets[1000:]) > 0.999
    assert readout_r2(features[:1000], others[:1000], features[1000:], others[1000:]) < 0.1


@pytest.mark.slow
def test_a_layer_with_the_base_signal_has_a_readout():
    """Four neurons per pair compute x₁x₂; none contains the product of four pairs."""
    task = drawn(PairHierarchy(d=8), jax.random.key(0))
    w = np.zeros((16, 8))
    a = np.zeros((16, 4))
    where = np.asarray(task.where)
    for pair in range(4):
        for index, (s, t) in enumerate([(1, 1), (-1, -1), (1, -1), (-1, 1)]):
            w[4 * pair + index, where[2 * pair : 2 * pair + 2]] = s, t
            a[4 * pair + index, pair] = 0.5 * s * t
    net = initial("3resnet", 16)(8, outputs=4, key=jax.random.key(1)).put(
        {"w": jnp.asarray(w, jnp.float32), "b": jnp.zeros(16), "a": jnp.asarray(a, jnp.float32)}
    )
    found = LayerReadout(1000).look(task, net, seen=None, key=jax.random.key(2))
    assert found["base_out1"] > 0.999 and found["base_first"] > 0.999
    assert found["composite_out1"] < 0.1 and found["composite_first"] < 0.1
    assert found["distance_out1"] < 1e-6


def test_norms_and_energies_of_first_layers():
    task = drawn(RealParity(d=10, k=6), jax.random.key(0))
    net = SignedInit(m=4, w_scale=1.0)(10, key=jax.random.key(1))
    assert np.sum(np.asarray(net.a)) == 0 and np.allclose(np.abs(net.a), 0.5)
    inside = net.put({"w": net.w * task.features.sum(axis=0)[None, :]})
    found = FirstLayerNorm().look(task, inside, seen=None, key=jax.random.key(2))
    assert found["energy"] == pytest.approx(10 / 6, rel=1e-5)
    assert found["norm"] == pytest.approx(float(np.linalg.norm(inside.w)) / np.sqrt(10), rel=1e-5)


@pytest.mark.slow
def test_layer_by_layer_trains_each_layer_once():
    joint = momentum_sgd("3resnet", "all", 8, 60, (0.05, 1e-3), 2)
    trials = Arm(PairHierarchy(d=8), layer_wise(joint), 60, (Performance(50),)).trials([3])
    (record,) = LocalEngine().run(trials)
    assert record.status == "ok" and [tuple(stage.rates) for stage in layer_wise(joint).stages] == [
        ("w", "b", "a"),
        ("v", "e"),
    ]


def test_spans_of_kernels_below_and_far_above_the_threshold():
    assert allowed(16, 8) == 12 and degrees_of(14) == (5, 6, 7)
    with jax.enable_x64(True):
        low = SpanRisk(kernel_named("rbf"), 14, (7,), precision=64).measure(key=jax.random.key(0))
        high = SpanRisk(kernel_named("rbf"), 6, (3,), examples=64, precision=64).measure(
            key=jax.random.key(0)
        )
    assert low["share_hard"][0] == 1 and low["mean_captured"][0] <= 3 / 3432 + 1e-12
    assert high["share_hard"][0] == 0 and high["mean_captured"][0] == pytest.approx(1)


def test_the_rank_argument_is_sharp():
    found = RankArgument(n=10, columns=20).measure(key=jax.random.key(0))
    assert found["singled_out"] == 0.5 and found["over_bound"] == pytest.approx(0.9)


@pytest.mark.slow
def test_computations_distinguish_the_controls():
    key = jax.random.key(5)
    with jax.enable_x64(True):
        assert (
            GradientFormula().measure(key=key)["gradient_gap"]
            < 1e-12
            < GradientFormula(without_skip=True).measure(key=key)["gradient_gap"]
        )
    true, steep = (GeneralClass(pairs=500, steep=steep).measure(key=key) for steep in (1.0, 5.0))
    assert (
        true["slope_over_bound"] < 1
        and true["norm_over_lifted_bound"] < 1 < true["norm_over_printed_bound"]
    )
    assert steep["slope_over_bound"] > true["slope_over_bound"] and steep["lemma_a2_gap"] > 0.1
    assert (
        np.max(HandMade().measure(key=key)["formula_gap"])
        < 1e-12
        < np.max(HandMade(wrong_signs=0.1).measure(key=key)["formula_gap"])
    )


def test_figure_2_has_nine_methods_and_one_program_for_each_grid():
    arms = figure2("laptop", "all")
    assert len(arms) == 9 + 4 + 1
    trials = arms["3resnet(all)"].trials([10, 11, 12])
    assert len(trials) == 4 * len(SIZES_A["laptop"].cells["3resnet"]) * 3


def test_figure_2_is_drawn_as_the_paper_draws_it():
    """Error versus width on logarithmic axes, one color per method, and the line kα² = 1.35."""
    claim = FIGURE2A
    plot, _ = claim.plots
    assert plot.log_x and plot.log_y and len(plot.series) == 10
    widths, records = (50, 200), {}
    for index, series in enumerate(plot.series):
        value = UNLEARNED if series.theory else 0.1 + index
        records[series.arm] = [
            hand_record(seed=seed, steps=widths, test_squared_error=value) for seed in range(3)
        ]
    found = claim_plot(plot, records)
    (axes,) = draw(found).axes
    drawn = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert len({line.get_color() for line in drawn}) == 10
    assert axes.get_yscale() == axes.get_xscale() == "log"
    (level,) = (line for line in drawn if np.allclose(line.get_ydata(), UNLEARNED))
    assert level.get_marker() in ("None", None, "")
    assert len(found.series) == 10
