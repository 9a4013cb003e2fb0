"""Exact computations and probes of allenzhu2019."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from programs import drawn, fitted
from toys import hand_record
from unlazy.kernels.catalog import kernel_named
from unlazy.lab.arms import Arm
from unlazy.lab.engines.local import LocalEngine
from unlazy.networks.inits import SignedInit
from unlazy.papers.allenzhu2019.computations import (
    GeneralClass,
    GradientFormula,
    HandMade,
    SphereClass,
)
from unlazy.papers.allenzhu2019.coupling import PARTS, Coupling, cheapest
from unlazy.papers.allenzhu2019.existence import (
    CUBIC,
    DEGREE,
    EVEN,
    SINE,
    IndicatorFunctions,
    Monomials,
    log_hermite,
)
from unlazy.papers.allenzhu2019.figure2 import FIGURE2A, SIZES_A, UNLEARNED, figure2
from unlazy.papers.allenzhu2019.forward import layer_wise
from unlazy.papers.allenzhu2019.hard_instance import (
    GoodPredictors,
    HardConstruction,
    composite_complexity,
)
from unlazy.papers.allenzhu2019.lower_bounds import (
    ChosenCharacters,
    RankArgument,
    SpanRisk,
    allowed,
    degrees_of,
)
from unlazy.papers.allenzhu2019.probability import IndicatorTails, SignChanges, two_sided_tail
from unlazy.papers.allenzhu2019.probes import FirstLayerNorm, LayerReadout, readout_r2
from unlazy.papers.allenzhu2019.random_patterns import PatternNetwork
from unlazy.papers.allenzhu2019.setting import initial, momentum_sgd
from unlazy.papers.allenzhu2019.theorem1 import CONDITIONS
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


def test_a_kernel_of_chosen_characters_learns_their_targets_only():
    """With N > d functions, the targets of N − d sets are learned exactly, no others."""
    found = ChosenCharacters(None, 12, (3,), examples=24).measure(key=jax.random.key(0))
    assert found["share_hard"][0] == pytest.approx(1 - 12 / 220)
    assert abs(found["least_risk"][0]) < 1e-9
    assert found["middle_risk"][0] == pytest.approx(1)  # x_i is learned, its product is not


def test_inputs_without_signal_do_not_lower_the_risk():
    """Remark D.3: averaging over other inputs cannot increase the error."""
    with jax.enable_x64(True):
        found = SpanRisk(
            kernel_named("rbf"), 6, (3,), examples=20, background=True, precision=64
        ).measure(key=jax.random.key(0))
    assert 0 < found["mean_captured"][0] <= 20 / 20 and found["least_risk"][0] >= 0


def test_the_conditions_of_theorem_1_are_far_from_met():
    met = {each.text.split()[0]: each.at("laptop", {}) for each in CONDITIONS}
    assert len(CONDITIONS) == 15 and not met["T"].met
    upper = next(each for each in CONDITIONS if "σ_w^{1/4}" in each.text).at("laptop", {})
    assert not upper.met and upper.constants == "C ≥ 13.7"
    assert composite_complexity(2) == pytest.approx(3 * 4 / (np.sqrt(2) * 2 * 4) * 2)


def test_the_hard_instance_is_a_sum_of_powers():
    true, control = (
        HardConstruction(unsigned=u).measure(key=jax.random.key(0)) for u in (False, True)
    )
    assert np.max(true["construction_gap"]) < 1e-12 < 0.1 < np.min(control["construction_gap"])


def test_the_bounds_of_lemma_d1_are_attained():
    found = GoodPredictors(functions=2).measure(key=jax.random.key(0))
    assert found["least_own"] == pytest.approx(0.75)
    assert found["most_others"] == pytest.approx(1 / 16)


def test_tails_are_those_of_known_distributions():
    for m, t in ((64, 30.0), (256, 60.0)):
        exact = scipy.stats.chi2.sf(m + t, m) + scipy.stats.chi2.cdf(m - t, m)
        found = two_sided_tail(lambda s, m=m: ((1 - 2j * s) ** -0.5 * np.exp(-1j * s)) ** m, t)
        assert found == pytest.approx(exact, rel=1e-6)
    ratios = IndicatorTails(levels=(5,)).measure(key=jax.random.key(0))
    assert 0 < ratios["squares_over_bound"][0] < 0.01


def test_sign_changes_of_a_gaussian_vector():
    """For small δ, entries up to c/√m change, with √(2/π)·c³/3 = δ²."""
    found = SignChanges(1 << 16).measure(key=jax.random.key(0))
    predicted = np.sqrt(2 / np.pi) * (3 * np.sqrt(np.pi / 2)) ** (1 / 3)
    assert found["changes_over"][2] == pytest.approx(predicted, rel=0.02)
    assert np.all(found["norm_over"] <= 1)


def test_neurons_are_switched_at_the_least_cost():
    g, gains = np.array([1.0, -0.1, 0.2, 3.0]), np.array([1.0, 1.0, -1.0, 1.0])
    np.testing.assert_array_equal(cheapest(g, gains, 1.02), [True, True, False, False])
    true, control = (
        Coupling((1 << 12,), biased=b).measure(key=jax.random.key(0)) for b in (False, True)
    )
    for name, constant in PARTS.items():
        assert true[name][0] <= constant, name
        assert control[name][0] > (constant if name != "base_gap" else 1), name


def test_hermite_series_of_indicators():
    found = Monomials().measure(key=jax.random.key(0))
    assert np.max(found["monomial_gap"]) < 1e-12
    np.testing.assert_allclose(found["over_corrected"], 4 / np.sqrt(2 * np.pi))
    assert found["over_printed"][0] > 1 > found["over_printed"][1]
    assert log_hermite(3, 50.0) == pytest.approx(np.log(50.0**3 - 3 * 50.0))
    fit = IndicatorFunctions((SINE,)).measure(key=jax.random.key(0))["fit_over_epsilon"]
    assert (
        fit < 1e-3 < IndicatorFunctions((EVEN,)).measure(key=jax.random.key(0))["fit_over_epsilon"]
    )
    x = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(SINE(x), np.sin(x), atol=1e-12)
    assert len(SINE.coefficients) == DEGREE + 1 and CUBIC.complexity == 1 + 2 + 2


def test_networks_with_random_patterns_fit_odd_functions_only():
    own, even = (
        PatternNetwork((256, 1 << 15), functions).measure(key=jax.random.key(0))["error"][1]
        for functions in ((SINE, CUBIC), (EVEN,))
    )
    assert own < 0.2 < 0.4 < even


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
    assert steep["slope_over_bound"] > true["slope_over_bound"]
    one, other = (SphereClass(steep=steep).measure(key=key) for steep in (1.0, 5.0))
    assert one["lemma_a2_gap"] < 1e-12 < 0.1 < other["lemma_a2_gap"]
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
