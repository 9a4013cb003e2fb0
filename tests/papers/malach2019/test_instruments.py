import jax
import numpy as np
import pytest

from unlazy.papers.malach2019 import instruments as circuits
from unlazy.papers.malach2019.instruments import (
    Enumeration,
    GenerativeMargin,
    LocalCorrelation,
    ParityConstruction,
    ParityMargin,
    PushForward,
)


def last(experiment, seed=0):
    with jax.enable_x64(True):
        return {name: float(np.atleast_1d(values)[-1]) for name, values in experiment.measure(key=jax.random.key(seed)).items()}


def test_exact_numbers_equal_enumeration():
    found = last(Enumeration((2, 8)))
    assert found["evaluation_errors"] == found["print_errors"] == 0
    assert found["correlation_gap"] < 1e-12 and found["influence_gap"] < 1e-12


def test_a_wrong_influence_would_be_seen(monkeypatch):
    right = circuits.influences
    monkeypatch.setattr(circuits, "influences", lambda circuit: [level * 0.99 for level in right(circuit)])
    assert last(Enumeration((8,)))["influence_gap"] > 1e-3


def test_lemmas():
    parity = last(ParityConstruction((4, 16)))
    assert parity["label_errors"] == 0 and parity["gap"] == pytest.approx(1) and abs(parity["printed_gap"]) < 1e-12
    push = last(PushForward((4, 8), sample=100_000))
    assert push["distance"] < 1e-12 and 0.7 < push["chi_square"] < 1.3
    lemma3 = last(LocalCorrelation((4,), circuits=60))
    assert lemma3["with_lca"] > 5 and lemma3["broken"] == 0 and lemma3["epsilon_ratio"] >= 1 and lemma3["checker_gap"] < 1e-12
    lemma6 = last(ParityMargin((4, 16), laws=10))
    assert lemma6["gap_ratio"] >= 1 and lemma6["inside"] >= 0
    lemma8 = last(GenerativeMargin((4, 64)))
    assert lemma8["gap"] < 1e-12 and lemma8["printed_least"] < 0


def test_a_law_that_is_not_generative_would_be_seen(monkeypatch):
    right = circuits.generative_masses

    def tilted(circuit):
        mass = right(circuit) * np.linspace(0.9, 1.1, 2**circuit.n)
        return mass / mass.sum()

    monkeypatch.setattr(circuits, "generative_masses", tilted)
    assert last(PushForward((8,), sample=1000))["distance"] > 1e-3
