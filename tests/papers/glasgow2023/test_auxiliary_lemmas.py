import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, fitted, looked
from unlazy.lab.arms import Arm
from unlazy.learners.base import Trace
from unlazy.networks.inits import SphereInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.glasgow2023.computations import (
    PopulationGradientFormulas,
    ReducedPhases,
    StartingGradients,
)
from unlazy.papers.glasgow2023.invariance import (
    PairSearch,
    ProofChain,
    RotatedSteps,
    RotationFloor,
    SeenOnInputs,
)
from unlazy.papers.glasgow2023.minibatches import MinibatchErrors
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.papers.glasgow2023.second_layer import FixedSecondInit
from unlazy.papers.glasgow2023.sizes import Training
from unlazy.papers.glasgow2023.spreading import SpreadVectors, probabilities_within, well_spread
from unlazy.tasks.base import Batch
from unlazy.tasks.multi_index import MultiIndex


def measured(computation, seed=0):
    with jax.enable_x64(computation.precision == 64):
        return computation.measure(key=jax.random.key(seed))


def test_spread_vectors_differ_from_sparse_ones():
    rng = np.random.default_rng(0)
    assert well_spread(rng.normal(size=2000), 4.0)
    assert not well_spread(np.eye(1, 2000)[0], 4.0) and not well_spread(np.ones(2000), 4.0)
    found, false = (
        measured(SpreadVectors((400,), 50, precision=64)),
        measured(SpreadVectors((400,), 5, sparse=True, precision=64)),
    )
    assert found["spread"][0] > 0.9 and found["small"][0] == pytest.approx(
        math.sqrt(2 / math.pi), rel=0.02
    )
    assert (
        false["spread"][0] == false["small"][0] == 0
        and false["gaussian_gap"][0] > 1 > found["gaussian_gap"][0]
    )


def test_both_methods_for_probabilities_agree_with_draws():
    rng = np.random.default_rng(1)
    for k in (12, 200):
        v = rng.normal(size=k) / math.sqrt(k)
        x = rng.choice([-1.0, 1.0], (100_000, k)) @ v
        assert probabilities_within(v, [(-0.2, 0.4)])[0] == pytest.approx(
            np.mean((x >= -0.2) & (x <= 0.4)), abs=0.006
        )


def test_coordinates_of_many_weights_agree_with_removing_each():
    v = np.random.default_rng(2).normal(size=60) / 8
    from unlazy.papers.glasgow2023.gradients import SignSum

    found = SignSum(v).coordinates(0.3, 0.1)
    for i in (0, 17, 59):
        distribution, w = SignSum(np.delete(v, i)), abs(v[i])
        assert found[i] == pytest.approx(
            w * (distribution.between(0.3 - w, 0.3 + w) - distribution.between(0.1 - w, 0.1 + w)),
            abs=1e-9,
        )


def test_negated_formulas_are_detected():
    right, turned = (
        measured(PopulationGradientFormulas((8,), 4, precision=64)),
        measured(PopulationGradientFormulas((8,), 4, turn=-1.0, precision=64)),
    )
    for name in ("signal_error", "opposite_error", "rest_error", "coordinate_error"):
        assert right[name][0] < 1e-9 < 1e-3 < turned[name][0]
    start = measured(StartingGradients((200,), 4, precision=64))
    assert start["each_ratio"][0] < 1 and start["rate_ratio"][0] == pytest.approx(1, abs=0.1)


def test_phase_one_ends_in_the_reduced_dynamics_and_not_in_noise():
    right, noise = (
        measured(ReducedPhases(d=1e4, width=200)),
        measured(ReducedPhases(d=1e4, width=200, thin=3e7)),
    )
    assert (
        right["end_share"] > 0.1
        and right["end_rest"] < 4
        and right["end_size"] <= 1
        and right["end_gap"] < 1
    )
    assert noise["end_share"] < 0.1 and noise["end_rest"] > 4


def trace_of(net):
    models = jax.tree.map(lambda leaf: leaf[None] if isinstance(leaf, jax.Array) else leaf, net)
    return Trace(models, jnp.zeros(1), Batch(jnp.zeros((1, 1)), jnp.zeros(1)), (0,))


@pytest.mark.slow
def test_minibatches_keep_their_distance_and_thin_ones_do_not():
    d = 64
    task = drawn(MultiIndex(d=d), jax.random.key(0))
    net = SphereInit(p=8, radius=0.3)(d, key=jax.random.key(1))
    assert isinstance(net, TwoLayer)
    m = math.ceil(d * math.log(d) ** 2)
    right = looked(MinibatchErrors(m, 4, 16), task, trace_of(net), found={}, key=jax.random.key(2))
    assert all(
        0 < float(right[name][0]) < 1
        for name in ("whole_ratio", "coordinate_ratio", "second_ratio", "first_length")
    )
    false = MinibatchErrors(m, 4, 16, thin=100, gain=12.0)(
        task, trace_of(net), found={}, key=jax.random.key(2)
    )
    assert all(
        float(false[name][0]) > 1 for name in ("whole_ratio", "coordinate_ratio", "second_ratio")
    )
    assert float(false["first_length"][0]) == pytest.approx(
        12 * float(right["first_length"][0]), rel=1e-3
    )


@pytest.mark.slow
def test_sgd_is_rotation_invariant_and_adam_is_not():
    assert measured(RotatedSteps(12, 8, 5, precision=64))["difference"] < 1e-12
    assert measured(RotatedSteps(12, 8, 5, optimizer="adam", precision=64))["difference"] > 0.01


@pytest.mark.slow
def test_a_learner_on_inputs_learns_on_a_rotated_cube():
    family = SeenOnInputs(MultiIndex(d=16, rotated=True))
    task = drawn(family, jax.random.key(0))
    assert family.handed(task).basis is None and family.dimension == 16
    arm = Training(d=16, width=32).arm((0, 60), ErrorRate(512), family=family)
    assert isinstance(arm, Arm)
    trace = fitted(arm.learner, family.handed(task), arm.n, jax.random.key(1))
    assert float(arm.probes[0](task, trace, found={}, key=jax.random.key(2))["error"][-1]) < 0.01


def test_the_floor_decreases_to_zero_with_enough_examples():
    found = measured(RotationFloor(8, (1, 2, 8), pairs=6))["floor"]
    assert (
        found[0] > found[2] and measured(RotationFloor(8, (8,), pairs=6, copies=4))["floor"][0] == 0
    )
    # One example: a class is all points at one distance from it, and of a pair's products both
    # signs are about as many.
    assert found[0] == pytest.approx(0.4, abs=0.1)


def test_the_proof_reaches_its_bound_and_a_search_for_pairs_beats_it():
    chain = measured(ProofChain((1200, 100_000)))
    assert (
        np.all(chain["bound"] >= 0.03) and np.all(chain["reach"] >= 1) and chain["first"][0] == 1009
    )
    assert np.all(measured(ProofChain((1200,), power=1))["bound"] == 0)
    assert measured(PairSearch((1200,)))["error"][0] < 0.03


def test_the_second_layer_has_the_norm_it_is_given():
    net = FixedSecondInit(SphereInit(p=6, radius=0.2), 1.0)(10, key=jax.random.key(0))
    np.testing.assert_allclose(np.abs(net.a) * 6, 1, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(net.w, axis=1), 0.2, rtol=1e-5)
