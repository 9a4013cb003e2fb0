import itertools

import jax
import numpy as np
import pytest

from unlazy.papers.malach2019 import computations as circuits
from unlazy.papers.malach2019.circuits import NOT_CONSTANT
from unlazy.papers.malach2019.computations import (
    Enumeration,
    LocalCorrelation,
    ParityConstruction,
    PushForward,
    all_inputs,
)
from unlazy.papers.malach2019.margins import (
    CountedFunctions,
    GenerativeMargin,
    ParityMargin,
    functions_of,
)
from unlazy.tasks.circuits.circuit import NAMES, Circuit, every_input


def last(experiment, seed=0):
    with jax.enable_x64(True):
        return {
            name: float(np.atleast_1d(values)[-1])
            for name, values in experiment.measure(key=jax.random.key(seed)).items()
        }


def test_recursions_equal_enumeration():
    found = last(Enumeration((2, 8)))
    assert found["evaluation_errors"] == found["print_errors"] == 0
    assert found["correlation_gap"] < 1e-12 and found["influence_gap"] < 1e-12


def test_another_circuit_is_detected():
    found = last(Enumeration((8,), other=True))
    assert (
        min(found["evaluation_errors"], found["print_errors"]) > 0
        and min(found["correlation_gap"], found["influence_gap"]) > 1e-3
    )


def test_a_wrong_influence_is_detected(monkeypatch):
    right = circuits.influences
    monkeypatch.setattr(
        circuits, "influences", lambda circuit: [level * 0.99 for level in right(circuit)]
    )
    assert last(Enumeration((8,)))["influence_gap"] > 1e-3


def test_lemmas():
    parity = last(ParityConstruction((4, 16, 32)))
    assert parity["label_errors"] == 0 and parity["frequency_z"] < 5
    push = last(PushForward((4, 8), sample=100_000))
    assert push["distance"] < 1e-12 and 0.7 < push["chi_square"] < 1.3
    lemma3 = last(LocalCorrelation((4,), circuits=60))
    assert (
        lemma3["with_lca"] > 5
        and lemma3["broken"] == lemma3["rare"] == 0
        and lemma3["tightest"] >= 1
        and lemma3["checker_gap"] < 1e-12
    )
    lemma6 = last(ParityMargin((4, 16), distributions=10))
    assert lemma6["gap_ratio"] >= 1 and lemma6["inside"] >= 0 and lemma6["pattern_ratio"] >= 1
    lemma8 = last(GenerativeMargin((4, 64)))
    assert (
        lemma8["gap"] < 1e-12
        and lemma8["least_ratio"] == pytest.approx(1)
        and lemma8["strict_ratio"] == pytest.approx(1.5)
    )
    assert (
        lemma8["influence"] > 0
        and lemma8["pattern_ratio"] >= 1
        and lemma8["closed_form"] == pytest.approx(1)
    )


def test_the_bounds_of_lemma_6_are_nearly_attained():
    found = last(ParityMargin((4, 16), distributions=40))
    assert found["gap_ratio"] < 1.1 and found["pattern_ratio"] < 1.1 and found["inside"] < 1e-3


def test_the_lemmas_fail_on_the_controls():
    parity = last(ParityConstruction((8,), gate="OR", p=0.7))
    assert parity["label_errors"] > 0 and parity["frequency_z"] > 5
    lemma3 = last(LocalCorrelation((4,), circuits=100, dependent=True))
    assert lemma3["broken"] > 0 and lemma3["rare"] > 0 and lemma3["checker_gap"] > 1e-3
    lemma6 = last(ParityMargin((4, 16), distributions=20, anywhere=True))
    assert lemma6["gap_ratio"] < 1 and lemma6["inside"] < 0 and lemma6["pattern_ratio"] < 1
    lemma8 = last(GenerativeMargin((4, 16), gates=NOT_CONSTANT, positive=0.95))
    assert (
        lemma8["gap"] > 0.1
        and lemma8["least_ratio"] < 0
        and lemma8["influence"] == 0
        and lemma8["pattern_ratio"] < 1
    )


def test_a_distribution_that_is_not_generative_is_detected(monkeypatch):
    right = circuits.generative_masses

    def tilted(circuit):
        mass = right(circuit) * np.linspace(0.9, 1.1, 2**circuit.n)
        return mass / mass.sum()

    monkeypatch.setattr(circuits, "generative_masses", tilted)
    assert last(PushForward((8,), sample=1000))["distance"] > 1e-3


def test_functions_are_counted_as_by_evaluating_all_circuits():
    known = {
        Circuit(np.array(gates)).output(every_input(4)).tobytes()
        for gates in itertools.product(range(16), repeat=3)
    }
    assert len(known) == len(functions_of(4)) == 2 + 2 * (6**4 - 1) // 5 == 520
    few = ("AND", "NOR")
    some = {
        Circuit(np.array(gates)).output(every_input(4)).tobytes()
        for gates in itertools.product([NAMES.index(name) for name in few], repeat=3)
    }
    assert len(some) == len(functions_of(4, few))


def test_functions_are_words_of_truth_tables():
    bits = all_inputs(2)
    tables = {
        tuple((word >> y) & 1 for word in row for y in range(2)) for row in functions_of(2).tolist()
    }
    assert tables == set(itertools.product((0, 1), repeat=4)) and len(bits) == 4


def test_growth_is_measured_in_powers_of_six():
    found = CountedFunctions((2, 4)).measure(key=jax.random.key(0))
    assert (
        found["growth"][-1] == pytest.approx(np.log(520 / 16) / np.log(36))
        and found["formula_gap"][-1] == 0
    )
    assert (
        CountedFunctions((2, 4), gates=("AND", "OR")).measure(key=jax.random.key(0))["formula_gap"][
            -1
        ]
        > 0
    )
