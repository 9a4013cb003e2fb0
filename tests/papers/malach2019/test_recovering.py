"""Layerwise learning as in the claims, at small sizes, and its failures."""

import dataclasses

import jax
import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.lab.arms import Arm
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.circuits.layerwise import Layerwise
from unlazy.papers.malach2019 import recovering
from unlazy.papers.malach2019.probes import Gates, Recovered, circuit_of
from unlazy.papers.malach2019.recovering import (
    COUNTER_EXAMPLE,
    COUNTER_MARGIN,
    epsilon_of,
    layerwise,
    margin_of,
    parity_margin,
    random_circuits,
    recovery_sweep,
    sample_for,
    smallest_sample,
    three_levels,
)
from unlazy.papers.malach2019.theorem_runs import theorem_sample, theorem_steps
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.families import BiasedParity, FixedCircuit, GenerativeCircuits

SEED = 10


def last(arm, seed=SEED):
    """Return the measurements of an arm for one seed, at its last step."""
    trials = arm.trials([seed])
    found = {
        record.key: record
        for record in LocalEngine().run(list({trial.key: trial for trial in trials}.values()))
    }
    (record,) = arm.join([found[trial.key] for trial in trials], [seed])
    return {name: series[-1] for name, series in record.measurements.items()}


@pytest.mark.parametrize("kind", ["generative", "parity"])
def test_margins_in_closed_form_are_exact(kind):
    for n in (4, 16, 64):
        task = random_circuits(kind, n).task(key=jax.random.key(n))
        assert correlations(task.circuit, task.input_distribution).margin == pytest.approx(
            margin_of(kind, n), abs=1e-12
        )


def test_margins_of_fixed_circuits_are_exact():
    with jax.enable_x64(True):
        parity = FixedCircuit("XNOR / XNOR XNOR", (0.85,) * 4)
        for family, margin in ((COUNTER_EXAMPLE, COUNTER_MARGIN), (parity, parity_margin(0.85, 4))):
            task = family.task(key=jax.random.key(0))
            assert correlations(task.circuit, task.input_distribution).margin == pytest.approx(
                margin, abs=1e-12
            )


def test_recovery_from_the_distribution_and_from_examples():
    found = last(recovery_sweep((4, 16), "generative", population=False))
    assert (
        found["worst_recovered"] == 100
        and found["worst_error"] == 0
        and found["sample"] == sample_for("generative", 16)
    )
    assert (
        found["theorem_sample"] > 1e3 * found["sample"]
        and found["theorem_steps"] > found["steps"] > 0
        and found["settled"] == 1
    )
    distribution = last(recovery_sweep((8,), "parity", population=True))
    assert (
        distribution["worst_recovered"] == 100
        and distribution["worst_error"] == 0
        and distribution["sample"] == 0
    )
    assert distribution["margin"] == pytest.approx(margin_of("parity", 8))


def test_too_few_examples_do_not_recover(monkeypatch):
    monkeypatch.setattr(recovering, "sample_for", lambda kind, n: 16)
    found = last(recovery_sweep((4, 16), "generative", population=False))
    assert found["worst_error"] > 0 and found["worst_recovered"] < 100


def test_the_worst_of_all_sizes_is_kept():
    table = {"recovered": np.array([100.0, 50, 100]), "error": np.array([0.0, 3, 0])}
    worst = recovering._worst(np.array([4, 8, 16]), table)
    assert worst["worst_recovered"].tolist() == [100, 50, 50] and worst["worst_error"].tolist() == [
        0,
        3,
        3,
    ]


@pytest.mark.parametrize("kind", ["generative", "parity"])
def test_without_correlation_nothing_is_recovered(kind):
    found = last(recovery_sweep((8,), kind, population=True, correlated=False))
    assert found["worst_error"] > 10 and found["worst_recovered"] < 100
    assert last(smallest_sample((8,), kind, tries=1, correlated=False))["worst_share"] == 2


@pytest.mark.parametrize("kind", ["generative", "parity"])
def test_the_closed_form_of_epsilon_is_that_of_the_worst_circuit(kind):
    for n in (4, 16):
        task = random_circuits(kind, n).task(key=jax.random.key(n))
        assert (
            correlations(task.circuit, task.input_distribution).epsilon
            >= epsilon_of(kind, n) - 1e-12
        )


@pytest.mark.slow
def test_the_smallest_sample_is_below_the_theorem():
    found = last(smallest_sample((4, 8), "generative", tries=2))
    assert 16 <= found["least"] <= 4096 and 0 < found["worst_share"] < 1e-2
    assert found["prediction"] == pytest.approx(1 / margin_of("generative", 8) ** 2)


def test_the_smallest_sample_is_that_at_which_nine_of_ten_succeed():
    comparison = recovering._min_sample(4, "generative", 10)
    trials = comparison.trials([SEED])
    known = {
        "steps": np.ones(6),
        "settled": np.ones(6),
        "margin": np.full(6, 4 / 9),
        "epsilon": np.full(6, 0.1),
    }
    (record,) = LocalEngine().run(trials[:1])
    sizes = record.steps
    assert sizes == (64, 128, 256, 512, 1024, 2048)
    # The r-th run succeeds from sizes[1] on, but two of ten only from sizes[4], and one never.
    records = [
        dataclasses.replace(
            record,
            measurements={
                **{k: tuple(v) for k, v in known.items()},
                "exact": tuple(float(i >= first) for i in range(6)),
            },
        )
        for first in [1] * 7 + [4, 4, 6]
    ]
    (joined,) = comparison.join(records, [SEED])
    assert joined.value("least") == sizes[4]
    never = [
        dataclasses.replace(r, measurements=r.measurements | {"exact": (0.0,) * 6}) for r in records
    ]
    (joined_never,) = comparison.join(never, [SEED])
    assert joined_never.value("least") == 2 * joined.value("theorem") > 100 * sizes[-1]


@pytest.mark.slow
def test_three_levels_agree_and_the_printed_sign_fails():
    found = last(three_levels(4, 100, circuits=1, limit=1500))
    assert found["different"] == 0 and found["error"] == found["literal_error"] == 0
    printed = last(three_levels(4, 500, circuits=2, limit=1500, printed_sign=True))
    assert (
        printed["error"] == pytest.approx(18)
        and printed["literal_error"] == pytest.approx(18)
        and printed["different"] > 0
    )


def test_a_gate_that_differs_is_detected():
    levels = recovering._same_sample(GenerativeCircuits(4), 4 / 9, 100, 500)
    records = list(
        LocalEngine().run([arm.trials([SEED])[0] for arm in list(levels.arms.values())[1:]])
    )
    counts, weights = records
    other = dataclasses.replace(
        weights,
        measurements=weights.measurements
        | {"gates": (float(int(weights.value("gates")) ^ 0x101),)},
    )
    (same,) = levels.join([counts, counts, weights], [SEED])
    (different,) = levels.join([counts, counts, other], [SEED])
    assert same.value("different") == 0 and different.value("different") == 2


def test_gates_are_written_as_one_number():
    circuit = Circuit.parse("OR / AND NAND / XOR LEFT NOR TRUE")
    number = float(sum(int(gate) << 4 * index for index, gate in enumerate(circuit.gates)))
    assert circuit_of(number, 8) == circuit
    learner = Layerwise(margin=0.4, k=32)
    with pytest.raises(BadInput, match="float64"):
        list(LocalEngine().run([Trial(FixedCircuit("AND"), learner, 50, 1, (Gates(),))]))


def test_tasks_without_a_circuit_are_rejected():
    arm = layerwise(BiasedParity(6, 2, 0.75), 0.25, None)
    with pytest.raises(BadInput, match="power of two"):
        list(LocalEngine().run(arm.trials([1])))
    from toys import Halfspace, small_learner

    with pytest.raises(BadInput, match="needs a circuit task"):
        list(LocalEngine().run(Arm(Halfspace(3), small_learner(), 32, (Recovered(),)).trials([1])))


def test_formulas_of_theorem_4():
    assert theorem_sample(0.25, 0.5, 4, 0.05) == pytest.approx(
        2**11 / (0.125**2) * np.log(8 * 4 * 2 / 0.05)
    )
    assert theorem_steps(0.25, 0.5, 4, 0.1) == pytest.approx(24 / (2**0.5 * 0.1 * 0.125))
