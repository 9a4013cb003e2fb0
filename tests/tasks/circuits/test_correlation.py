import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlazy.core.errors import BadInput
from unlazy.papers.malach2019.computations import (
    all_inputs,
    enumerated_influences,
    generative_masses,
    plain_evaluation,
)
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.correlation import correlations, influences, simplified, tables
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    MixtureDistribution,
    ProductDistribution,
    WeightedSample,
    draw,
    signs,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.theory.local_properties import check_properties

RNG = np.random.default_rng


def enumerated(circuit, mass):
    """Return the distribution as a weighted sample of all inputs."""
    x = all_inputs(circuit.n)
    return WeightedSample(x, plain_evaluation(circuit, x)[0][:, 0] > 0, mass / mass.sum())


def same(one, two, tolerance=1e-12):
    assert all(np.allclose(a, b, rtol=0, atol=tolerance) for a, b in zip(one, two, strict=True))


@given(st.sampled_from([2, 4, 8, 16]), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_product_distributions_equal_enumeration(n, seed):
    rng = RNG(seed)
    circuit, p = random_circuit(n, rng, NAMES), rng.random(n)
    x = all_inputs(n)
    by_hand = enumerated(circuit, np.prod(np.where(x, p, 1 - p), axis=1))
    same(tables(circuit, ProductDistribution(p)), tables(circuit, by_hand))
    same(correlations(circuit, ProductDistribution(p)).c, correlations(circuit, by_hand).c)
    same(influences(circuit), enumerated_influences(circuit))


@given(st.sampled_from([2, 4, 8]), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_generative_distributions_and_mixtures_equal_enumeration(n, seed):
    rng = RNG(seed)
    circuit = random_circuit(n, rng, tuple(name for name in NAMES if name not in ("TRUE", "FALSE")))
    same(
        tables(circuit, GenerativeDistribution(circuit)),
        tables(circuit, enumerated(circuit, generative_masses(circuit))),
    )
    p = rng.random(n)
    x = all_inputs(n)
    mixed = 0.3 * generative_masses(circuit) + 0.7 * np.prod(np.where(x, p, 1 - p), axis=1)
    distribution = MixtureDistribution(
        (0.3, 0.7), (GenerativeDistribution(circuit), ProductDistribution(p))
    )
    same(tables(circuit, distribution), tables(circuit, enumerated(circuit, mixed)))


def test_correlation_halves_by_two_thirds_a_level():
    circuit = random_circuit(64, RNG(0))
    for i, level in enumerate(correlations(circuit, GenerativeDistribution(circuit)).c):
        np.testing.assert_allclose(np.abs(level), (2 / 3) ** i, atol=1e-14)


def test_gates_without_influence_become_true():
    circuit = Circuit.parse("LEFT / AND XOR")
    assert str(simplified(circuit)) == "LEFT\nAND TRUE"
    assert influences(circuit)[1].tolist() == [1, 0] and influences(circuit)[2].tolist() == [
        0.5,
        0.5,
        0,
        0,
    ]


def test_the_check_names_the_violating_node():
    distribution = ProductDistribution(np.full(8, 0.75))
    assert {
        f.answer for f in check_properties(parity_circuit(8, [0, 1, 5]), distribution).values()
    } == {"holds"}
    printed = check_properties(parity_circuit(8, [0, 1, 5], printed=True), distribution)
    assert printed["LCA"].answer == printed["Property 1"].answer == "fails"
    assert "gate (2, 2) TRUE has |c| − |E y| = 0" in str(printed["LCA"])
    uniform = check_properties(parity_circuit(4, [0, 3]), ProductDistribution(np.full(4, 0.5)))
    assert uniform["LCA"].answer == "fails" and uniform["LCA"].constant == 0


def test_property_2_fails_if_a_pattern_depends_on_the_label_given_its_gate():
    circuit = Circuit.parse("AND / OR OR")
    # x1 selects the product distribution below the other gate, so OR's pattern depends on y.
    high, low = (
        ProductDistribution(np.array([1, 0.5, 0.9, 0.9])),
        ProductDistribution(np.array([0, 0.5, 0.1, 0.1])),
    )
    found = check_properties(circuit, MixtureDistribution((0.5, 0.5), (high, low)))
    assert found["Property 2"].answer == "fails" and "gate (1, 1) OR" in found["Property 2"].breaker


def test_property_1_fails_if_a_gate_without_influence_depends_on_the_label():
    circuit = Circuit.parse("LEFT / OR OR")
    distribution = MixtureDistribution(
        (0.5, 0.5), (ProductDistribution(np.full(4, 0.9)), ProductDistribution(np.full(4, 0.1)))
    )
    assert "gate (1, 2) OR has no influence but is not independent of the label" in str(
        check_properties(circuit, distribution)["Property 1"]
    )


def test_a_sample_leaves_undecided_properties_open():
    circuit = random_circuit(4, RNG(1))
    distribution = GenerativeDistribution(circuit)

    def answer(count):
        sample = WeightedSample.of(
            *signs(draw(circuit, distribution, count, np.random.Generator(np.random.SFC64(1))))
        )
        return check_properties(circuit, sample, confidence=0.95)["LCA"].answer

    assert answer(50) == "open" and answer(20_000) == "holds"
    parity = parity_circuit(4, [0, 1, 2, 3])
    sample = WeightedSample.of(
        *signs(
            draw(
                parity,
                ProductDistribution(np.full(4, 0.5)),
                20_000,
                np.random.Generator(np.random.SFC64(1)),
            )
        )
    )
    assert check_properties(parity, sample, confidence=0.95)["LCA"].answer == "open"


def test_statistics_of_another_circuit_are_refused():
    with pytest.raises(BadInput, match="that of the same circuit"):
        tables(Circuit.parse("OR"), GenerativeDistribution(Circuit.parse("AND")))
    with pytest.raises(BadInput, match="an input distribution is exact"):
        check_properties(Circuit.parse("OR"), ProductDistribution(np.full(2, 0.5)), confidence=0.9)


def test_a_constant_function_has_infinite_margin():
    assert (
        check_properties(Circuit.parse("TRUE"), ProductDistribution(np.full(2, 0.5)))["LCA"].answer
        == "holds"
    )
