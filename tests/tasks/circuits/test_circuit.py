import itertools
import re

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import check_family
from programs import drawn, sampled
from selection import slow_but_first
from unlazy.core.errors import BadInput
from unlazy.papers.malach2019.computations import plain_evaluation
from unlazy.tasks.circuits.bits import unpack
from unlazy.tasks.circuits.circuit import GATES, NAMES, Circuit, every_input
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    MixtureDistribution,
    ProductDistribution,
    WeightedSample,
    draw,
    signs,
    stream,
)
from unlazy.tasks.circuits.examples import (
    and_of_ors,
    parity_circuit,
    random_circuit,
    razborov_sherstov,
)
from unlazy.tasks.circuits.families import (
    BiasedParity,
    GenerativeCircuits,
    ProductCircuits,
    evaluate_signs,
)


def circuits(depth=4):
    """Circuits of all sixteen gates."""
    return (
        st.integers(1, depth)
        .flatmap(lambda d: st.lists(st.integers(0, 15), min_size=2**d - 1, max_size=2**d - 1))
        .map(np.array)
        .map(Circuit)
    )


def test_gates_compute_their_named_functions():
    expected = {
        "AND": lambda a, b: a and b,
        "OR": lambda a, b: a or b,
        "XNOR": lambda a, b: a == b,
        "XOR": lambda a, b: a != b,
        "LEFT": lambda a, b: a,
        "NOTRIGHT": lambda a, b: not b,
        "LE": lambda a, b: a <= b,
        "GT": lambda a, b: a > b,
        "NAND": lambda a, b: not (a and b),
        "NOR": lambda a, b: not (a or b),
    }
    for name, rule in expected.items():
        circuit = Circuit.parse(name)
        for place, (a, b) in enumerate(itertools.product((False, True), repeat=2)):
            assert unpack(circuit.output(every_input(2))[None], 4)[place, 0] == rule(a, b), (
                name,
                a,
                b,
            )


@given(circuits())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_printing_can_be_read_back_and_all_evaluations_agree(circuit):
    assert (
        Circuit.parse(str(circuit)) == circuit
        and Circuit.parse(str(circuit).replace("\n", " / ").lower()) == circuit
    )
    x = unpack(every_input(circuit.n), 2**circuit.n)
    plain = plain_evaluation(circuit, x)
    for packed, expected in zip(circuit.evaluate(every_input(circuit.n)), plain, strict=True):
        np.testing.assert_array_equal(unpack(packed, len(x)), expected)
    by_signs = evaluate_signs(np.asarray(circuit.gates, int), np.where(x, 1.0, -1.0)[:64])
    np.testing.assert_array_equal(by_signs > 0, plain[0][:64, 0] == 1)


def test_a_formula_is_readable():
    assert Circuit.parse("OR / AND XNOR  # a comment").formula() == "OR(AND(x1, x2), XNOR(x3, x4))"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("OR / AND", "Level 1 of a circuit must have 2 gates, got 1"),
        ("OR / AND AND AND", "Level 1 of a circuit must have 2 gates, got 3"),
        ("OR / AND ADN", "Gate 2 of level 1: There is no gate named 'ADN'. Did you mean 'AND'"),
        ("# nothing", "at least one gate"),
    ],
)
def test_invalid_circuits_are_refused_with_the_position(text, says):
    with pytest.raises(BadInput, match=re.escape(says)):
        Circuit.parse(text)


def test_bad_sizes_numbers_and_probabilities_are_refused():
    for action, says in [
        (lambda: Circuit(np.zeros(4, int)), "got 5 inputs for 4 gates"),
        (lambda: Circuit(np.array([8, 16, 1])), "got 16 for gate 1 of level 1"),
        (lambda: random_circuit(6, np.random.default_rng(0)), "n=6"),
        (lambda: random_circuit(4, np.random.default_rng(0), ("AND", "NANT")), "Did you mean"),
        (lambda: parity_circuit(4, [4]), "0 … 3"),
        (
            lambda: ProductDistribution(np.array([0.2, 1.2])),
            "P(x2 = 1) must lie in [0, 1], got 1.2",
        ),
        (lambda: ProductDistribution(np.array([np.nan])), "P(x1 = 1)"),
        (
            lambda: GenerativeDistribution(Circuit.parse("OR / AND TRUE")),
            "got TRUE for gate 2 of level 1",
        ),
        (
            lambda: MixtureDistribution((0.5, 0.6), (ProductDistribution(np.ones(2)),) * 2),
            "with sum 1",
        ),
        (
            lambda: draw(
                Circuit.parse("OR"), ProductDistribution(np.ones(4)), 3, np.random.default_rng(0)
            ),
            "has 2 inputs",
        ),
        (lambda: GenerativeCircuits(12), "power of two"),
        (lambda: GenerativeCircuits(4, gates=("AND", "TRUE")), "omit"),
        (lambda: ProductCircuits(4, low=0.0), "low"),
        (lambda: BiasedParity(4, 4, 0.5), "got 4"),
        (lambda: BiasedParity(4, 2, 1.0), "p (the"),
    ]:
        with pytest.raises(BadInput, match=re.escape(says)):
            action()


@pytest.mark.parametrize("printed", [False, True])
def test_parities_are_products_of_signs(printed):
    x = np.where(unpack(every_input(8), 256), 1, -1)
    for relevant in ([0], [1, 6], [0, 1, 2, 3, 4, 5, 6, 7], [2, 3, 5]):
        circuit = parity_circuit(8, relevant, printed=printed)
        output = unpack(circuit.output(every_input(8))[None], 256)[:, 0]
        np.testing.assert_array_equal(np.where(output, 1, -1), np.prod(x[:, relevant], axis=1))
    assert (GATES["LEFT"] in parity_circuit(8, [0]).gates) and (
        NAMES[parity_circuit(8, [0], printed=True).gates[0]] == "XNOR"
    )


@pytest.mark.parametrize(("m", "r"), [(1, 1), (1, 3), (2, 2), (3, 2), (2, 4)])
def test_and_of_ors(m, r):
    circuit = and_of_ors(m, r)
    x = unpack(every_input(circuit.n), 2**circuit.n)
    pairs = (x[:, 0::2] & x[:, 1::2]).reshape(len(x), -1, 2 ** (r - 1).bit_length())
    expected = pairs[:, :m, :r].any(axis=2).all(axis=1)
    np.testing.assert_array_equal(
        unpack(circuit.output(every_input(circuit.n))[None], len(x))[:, 0], expected
    )
    assert razborov_sherstov(2) == and_of_ors(2, 4)


def test_generative_inputs_give_their_label_and_are_uniform_given_it():
    circuit = Circuit.parse("OR / NAND XOR")
    batch = draw(
        circuit,
        GenerativeDistribution(circuit, positive=0.25),
        64_000,
        np.random.Generator(np.random.SFC64(3)),
    )
    x, y = signs(batch)
    assert abs((y > 0).mean() - 0.25) < 0.01
    negative = x[y < 0]  # NAND and XOR are both false: (1, 1) and two equal bits
    assert np.all(negative[:, :2] == 1) and np.all(negative[:, 2] == negative[:, 3])
    assert abs((negative[:, 2] > 0).mean() - 0.5) < 0.02


def test_a_mixture_draws_all_bits_of_an_example_from_one_component():
    distribution = MixtureDistribution(
        (0.3, 0.7), (ProductDistribution(np.ones(4)), ProductDistribution(np.zeros(4)))
    )
    x = unpack(distribution.draw(30_000, np.random.Generator(np.random.SFC64(4))), 30_000)
    assert np.all(x.all(axis=1) | ~x.any(axis=1)) and abs(x[:, 0].mean() - 0.3) < 0.02


def test_a_stream_is_the_same_at_each_reading_and_has_bounded_chunks(monkeypatch):
    monkeypatch.setattr("unlazy.tasks.circuits.distributions.CHUNK_WORDS", 16)
    circuit = random_circuit(8, np.random.default_rng(0))
    source = stream(circuit, GenerativeDistribution(circuit), 300, [1, 2])
    first, second = list(source()), list(source())
    assert [b.count for b in first] == [128, 128, 44]
    assert all(np.array_equal(a.x, b.x) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0].x, first[1].x)


def test_samples_are_checked():
    with pytest.raises(BadInput, match="with sum 1"):
        WeightedSample(np.zeros((2, 2), bool), np.zeros(2, bool), np.ones(2))


@pytest.mark.parametrize(
    "family",
    slow_but_first([BiasedParity(8, 3, 0.7), GenerativeCircuits(8), ProductCircuits(8)]),
)
def test_families_keep_the_contract(family):
    check_family(family)


@pytest.mark.slow
def test_the_direction_of_a_generative_task_is_its_correlation():
    task = drawn(GenerativeCircuits(8), jax.random.key(1))
    x, y = sampled(task, 60_000, jax.random.key(2))
    np.testing.assert_allclose(
        np.asarray(y @ x) / len(y), np.asarray(task.features[0]) * (2 / 3) ** 3 * 8**0.5, atol=0.02
    )
