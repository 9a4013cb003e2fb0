import jax
import numpy as np
import pytest

from unlazy.papers.malach2019 import instruments as circuits
from unlazy.papers.malach2019 import recovering as layerwise
from unlazy.papers.malach2019 import shallow as depth
from unlazy.papers.malach2019.instruments import (
    Enumeration,
    GenerativeMargin,
    LocalCorrelation,
    ParityConstruction,
    ParityMargin,
    PushForward,
)
from unlazy.papers.malach2019.recovering import LeastSample, RecoverySweep, Uncorrelated, sample_for, theorem_sample, theorem_steps
from unlazy.papers.malach2019.shallow import DeepRecovery, SignRank
from unlazy.tasks.circuits.circuit import Circuit


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


def test_recovery_and_its_failure():
    found = last(RecoverySweep((4, 16), kind="generative", population=False))
    assert found["worst_recovered"] == 100 and found["worst_error"] == 0 and found["sample"] == sample_for("generative", 16)
    assert found["theorem_sample"] > 1e3 * found["sample"] and found["theorem_steps"] > found["steps"]
    none = last(Uncorrelated(8, 2000))
    assert none["uniform_error"] == 50 and none["gate_error"] > 10 and none["contrast_error"] == none["contrast_error_sample"] == 0


def test_too_few_examples_do_not_recover(monkeypatch):
    monkeypatch.setattr(layerwise, "sample_for", lambda kind, n: 16)
    assert last(RecoverySweep((16,), kind="generative", population=False))["worst_error"] > 0


def test_the_least_sample_grows():
    found = last(LeastSample((4, 8), kind="generative", tries=4))
    assert 16 <= found["least"] <= 4096 and found["exponent"] >= 0 and found["orders_below_theorem"] > 2


def test_formulas_of_theorem_4():
    assert theorem_sample(0.25, 0.5, 4, 0.05) == pytest.approx(2**11 / (0.125**2) * np.log(8 * 4 * 2 / 0.05))
    assert theorem_steps(0.25, 0.5, 4, 0.1) == pytest.approx(24 / (2**0.5 * 0.1 * 0.125))


def test_depth_separation_in_small():
    rank = last(SignRank(6, networks=2))
    assert rank["rank_ratio"] <= 1 and rank["inner_product"] == pytest.approx(1) and rank["razborov_sherstov"] >= 1
    deep = last(DeepRecovery((1, 2), sample=4096))
    assert deep["error"] == deep["error_sample"] == 0 and deep["recovered"] == 100 and deep["inputs"] == 16


def test_a_tree_that_is_not_learned_would_be_seen(monkeypatch):
    monkeypatch.setattr(depth, "razborov_sherstov", lambda m: Circuit.parse("XNOR / XNOR XNOR"))
    deep = last(DeepRecovery((2,), sample=64))
    assert deep["recovered"] < 100 and deep["error"] > 0
