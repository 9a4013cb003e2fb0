"""Each slip that was found in the paper, shown."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.learners.circuits.layerwise import learn_circuit
from unlazy.networks.tree import TreeInit, initial_tree
from unlazy.papers.malach2019 import CLAIMS, ERRATA, NOT_RUN
from unlazy.papers.malach2019.instruments import (
    PushForward,
    all_inputs,
    enumerated_influences,
    plain_evaluation,
    printed_masses,
)
from unlazy.papers.malach2019.layers import lemma14_width, or_of_biased_bits
from unlazy.papers.malach2019.margins import GenerativeMargin, printed_recursion
from unlazy.papers.malach2019.shallow import term_network
from unlazy.papers.malach2019.theorem_runs import theorem_width
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.examples import parity_circuit, razborov_sherstov
from unlazy.tasks.circuits.laws import GenerativeLaw, ProductLaw
from unlazy.tasks.circuits.recovery import LawStatistics, recovery
from unlazy.theory.sign_rank import network_matrix, rounding_steps, sign_matrix


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def learned(circuit, law, margin, **settings):
    tree = initial_tree(circuit.n, 32, key=jax.random.key(10))
    return learn_circuit(LawStatistics(circuit, law), tree, margin=margin, **settings)


def test_every_correction_is_an_erratum_whose_test_is_here():
    known = {erratum.id for erratum in ERRATA}
    assert {name for claim in CLAIMS for name in claim.corrections} <= known
    assert {erratum.test.rpartition("::")[2] for erratum in ERRATA} <= set(globals())
    assert not {row.id for row in NOT_RUN} & {claim.id for claim in CLAIMS}


def test_the_printed_regulariser_loses_a_gate():
    case = or_of_biased_bits()
    assert case.margin == pytest.approx(0.28)
    errors = [
        recovery(
            case.circuit,
            case.law,
            learned(case.circuit, case.law, case.margin, printed_sign=printed).circuit,
        ).error
        for printed in (False, True)
    ]
    assert errors == pytest.approx([0, 0.18])


@pytest.mark.slow
def test_the_gradient_along_a_pattern_has_the_square_of_its_norm():
    law, y, penalty = jnp.array([0.1, 0.2, 0.3, 0.4]), jnp.array([-1.0, 1, 1, 1]), 0.7
    patterns = jnp.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    model = TreeInit(6)(2, key=jax.random.key(10))

    def loss(w):
        score = type(model)((w,), model.v)(patterns)
        return jnp.sum(law * (jnp.maximum(1 - y * score, 0) + penalty * jnp.abs(1 + score)))

    along = jax.grad(loss)(model.w[0])[0] @ patterns.T  # neurons, patterns
    active = model.w[0][0] @ patterns.T > 0
    size, pull = 2, law * (penalty - y)
    expected = 4 / size * model.v[0][0][:, None] * pull[None, :]
    np.testing.assert_allclose(along[active], expected[active], rtol=1e-12)
    assert not np.allclose(along[active], expected[active] / math.sqrt(2), rtol=0.1)


def test_gates_without_influence_become_minus_one():
    circuit, law = Circuit.parse("LEFT / LEFT TRUE"), ProductLaw(np.array([0.7, 0.4, 0.6, 0.3]))
    known = correlations(circuit, law)
    assert known.influence[1][1] == 0 and known.mean_label > 0
    found = learned(circuit, law, known.margin).layers[1].values
    assert np.all(found[1] == -1) and np.any(found[0] == 1)


def test_the_width_of_theorem_4_is_smaller_than_that_of_lemma_14():
    delta = 0.05
    for d in range(1, 9):
        n = 2**d
        assert (
            theorem_width(n, delta)
            < math.log(4 * n * d / delta) / math.log(4 / 3)
            <= lemma14_width(n * d)
        )
        at_start = 4 * (n - 1) * 0.75 ** theorem_width(n, delta)
        assert at_start <= 2 * delta / d
        assert (at_start + (n - 1) * delta / (n * d) <= delta) == (d >= 3)


def test_influence_is_that_on_the_output():
    circuit = Circuit.parse("LEFT / LEFT LEFT")
    x = all_inputs(4)
    turned = x.copy()
    turned[:, 2] ^= True
    level = [plain_evaluation(circuit, part)[1] for part in (x, turned)]
    assert np.all(np.any(level[0] != level[1], axis=1)), "x3 always turns its own level"
    assert enumerated_influences(circuit)[2][2] == 0


def test_a_gate_without_correlation_may_be_learned_where_labels_are_not_balanced():
    circuit, law = Circuit.parse("OR / LEFT LEFT"), ProductLaw(np.array([0.25, 0.5, 2 / 3, 0.5]))
    known = correlations(circuit, law)
    assert (
        known.c[1][0] == pytest.approx(0)
        and known.influence[1][0] > 0
        and known.mean_label == pytest.approx(0.5)
    )
    assert known.margin < 0, "LCA fails"
    assert recovery(circuit, law, learned(circuit, law, 0.01).circuit).exact


def test_the_printed_parity_circuit_breaks_lca():
    for relevant in itertools.combinations(range(8), 3):
        law = ProductLaw(np.full(8, 0.75))
        printed, right = (
            correlations(parity_circuit(8, relevant, printed=printed), law)
            for printed in (True, False)
        )
        assert printed.margin == pytest.approx(0, abs=1e-12) and right.margin == pytest.approx(
            0.125
        )


def test_the_printed_sampler_breaks_lemma_9():
    circuit = Circuit.parse("OR / AND OR")
    values = plain_evaluation(circuit, all_inputs(4))[1]
    mass = printed_masses(circuit)
    assert mass.sum() == pytest.approx(1) and mass @ np.all(values == 1, axis=1) == pytest.approx(1)
    found = [
        PushForward((4,), sample=100, printed=printed).measure(key=jax.random.key(10))["distance"][
            0
        ]
        for printed in (True, False)
    ]
    assert found[0] == pytest.approx(2 / 3) and found[1] < 1e-12


def test_lemma_8_is_an_equality_at_the_inputs():
    for d in (1, 2, 3, 4):
        circuit = Circuit(np.random.default_rng(d).choice([8, 14, 7, 1], 2**d - 1))
        known = correlations(circuit, GenerativeLaw(circuit))
        assert known.mean_label == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(np.abs(known.c[d]), (2 / 3) ** d, rtol=1e-12)
        np.testing.assert_allclose(np.abs(known.c[d - 1]), 1.5 * (2 / 3) ** d, rtol=1e-12)


def test_the_recursion_of_lemma_8_as_printed_leaves_the_probabilities():
    assert printed_recursion(Circuit.parse("AND / AND AND")) == pytest.approx(-1 / 9)
    # As it should be: P(x_j = 1 | y = 1) by listing all inputs.
    circuit = Circuit.parse("AND / OR AND")
    x = all_inputs(4)
    mass = np.where(plain_evaluation(circuit, x)[0][:, 0] == 1, np.asarray(_generative(circuit)), 0)
    np.testing.assert_allclose(mass @ x / mass.sum(), [2 / 3, 2 / 3, 1, 1])


def _generative(circuit):
    from unlazy.papers.malach2019.instruments import generative_masses

    return generative_masses(circuit)


def test_the_rarest_pattern_of_a_generative_law():
    smallest = Circuit.parse("AND")
    assert (
        correlations(smallest, GenerativeLaw(smallest)).epsilon == pytest.approx(1 / 6)
        and 1 / 6 < 1 / 4
    )
    found = GenerativeMargin((2, 4, 8)).measure(key=jax.random.key(10))
    np.testing.assert_allclose(found["closed_form"], 1)
    for gates in itertools.product([8, 14, 7, 1], repeat=3):
        circuit = Circuit(np.array(gates))
        assert correlations(circuit, GenerativeLaw(circuit)).epsilon >= 0.25 * (2 / 3) ** 2 - 1e-12


def test_the_margin_belongs_into_the_bound_of_theorem_12():
    half, gamma = 8, 0.01
    left = 4 * half * rounding_steps(1, 1, half, gamma)
    assert left == 108_800 > 24 * half**2 == 1536 and left <= 24 * half**2 / gamma


def test_f_m_has_a_network_of_fewer_neurons_than_corollary_13_says():
    for m in (1, 2):
        w, v, b, u = term_network(m)
        assert len(u) == 2 * m * m ** (2 * m) + 1 and all(
            np.abs(part).max() <= 1 for part in (w, v, b, u)
        )
        assert (
            network_matrix(w, v, b, u) * sign_matrix(razborov_sherstov(m))
        ).min() == pytest.approx(0.5)
    share = [math.log2(2 * m * m ** (2 * m) + 1) / (2 * m**3) for m in (2, 4, 8, 16, 32)]
    assert all(a > b for a, b in itertools.pairwise(share)) and share[-1] < 0.01, (
        "no constant times n is below the logarithm"
    )
