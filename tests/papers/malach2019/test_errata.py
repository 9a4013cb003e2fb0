"""One test per erratum."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unlazy.learners.circuits.layerwise import learn_circuit
from unlazy.networks.tree import TreeInit, initial_tree
from unlazy.papers.malach2019 import CLAIMS, ERRATA
from unlazy.papers.malach2019.computations import (
    all_inputs,
    enumerated_influences,
    plain_evaluation,
)
from unlazy.papers.malach2019.layers import or_of_biased_bits
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.distributions import GenerativeDistribution, ProductDistribution
from unlazy.tasks.circuits.examples import parity_circuit, razborov_sherstov
from unlazy.tasks.circuits.recovery import PopulationStatistics, recovery
from unlazy.theory.sign_rank import network_matrix, rounding_steps, sign_matrix


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def learned(circuit, distribution, margin, **settings):
    tree = initial_tree(circuit.n, 32, key=jax.random.key(10))
    return learn_circuit(
        PopulationStatistics(circuit, distribution), tree, margin=margin, **settings
    )


def test_every_correction_is_an_erratum_whose_test_is_here():
    known = {erratum.id for erratum in ERRATA}
    assert {name for claim in CLAIMS for name in claim.corrections} <= known
    assert {erratum.test.rpartition("::")[2] for erratum in ERRATA} <= set(globals())


def test_the_printed_regularizer_loses_a_gate():
    case = or_of_biased_bits()
    assert case.margin == pytest.approx(0.28)
    errors = [
        recovery(
            case.circuit,
            case.distribution,
            learned(case.circuit, case.distribution, case.margin, printed_sign=printed).circuit,
        ).error
        for printed in (False, True)
    ]
    assert errors == pytest.approx([0, 0.18])


@pytest.mark.parametrize("printed", [False, True])
def test_corollaries_7_and_10_hold_with_either_sign(printed):
    cases = [
        (parity_circuit(8, (0, 3, 4)), ProductDistribution(np.full(8, 0.75))),
        (parity_circuit(8, (1, 2, 7)), ProductDistribution(np.linspace(0.6, 0.9, 8))),
    ]
    for seed in range(3):
        circuit = Circuit(np.random.default_rng(seed).choice([8, 14, 7, 1], 7))
        cases.append((circuit, GenerativeDistribution(circuit)))
    for circuit, distribution in cases:
        margin = 0.99 * correlations(circuit, distribution).margin
        found = learned(circuit, distribution, margin, printed_sign=printed, rate="scaled").circuit
        assert recovery(circuit, distribution, found).exact


@pytest.mark.slow
def test_the_gradient_along_a_pattern_has_the_square_of_its_norm():
    distribution, y, penalty = jnp.array([0.1, 0.2, 0.3, 0.4]), jnp.array([-1.0, 1, 1, 1]), 0.7
    patterns = jnp.array([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    model = TreeInit(6)(2, key=jax.random.key(10))

    def loss(w):
        score = type(model)((w,), model.v)(patterns)
        return jnp.sum(
            distribution * (jnp.maximum(1 - y * score, 0) + penalty * jnp.abs(1 + score))
        )

    along = jax.grad(loss)(model.w[0])[0] @ patterns.T  # neurons, patterns
    active = model.w[0][0] @ patterns.T > 0
    size, pull = 2, distribution * (penalty - y)
    expected = 4 / size * model.v[0][0][:, None] * pull[None, :]
    np.testing.assert_allclose(along[active], expected[active], rtol=1e-12)
    assert not np.allclose(along[active], expected[active] / math.sqrt(2), rtol=0.1)


def test_lemmas_16_and_22_and_the_set_a_t_keep_their_constants():
    """The factor 4/n_i instead of 2√2/n_i changes no statement."""
    for delta, product in itertools.product((0.4, 0.05, 1e-3), (0.2, 1e-2, 1e-4)):
        examples = 2**11 / product**2 * math.log(8 / delta)
        tau = product / (16 * math.sqrt(2))  # 4τ/n_i is the bound of Lemma 16
        assert 4 * tau == pytest.approx(product / (4 * math.sqrt(2)))
        # Four patterns; λ − y takes two values that differ by 2, times an indicator.
        assert 4 * 2 * math.exp(-examples * tau**2 / 2) <= delta
    # The largest mean of (λ − y)·1{p}: all of one label, λ = E y + Δ/4 with E y ≥ 0.
    mean = np.linspace(0, 1, 1001)[:, None]
    margin = np.linspace(0, 1, 101)[None]
    penalty = np.minimum(1, mean + margin / 4)
    pulls = np.maximum((1 + penalty) * (1 - mean) / 2, (1 - penalty) * (1 + mean) / 2)
    assert np.all(pulls <= (1 + margin / 4) / 2 + 1e-12)
    assert 4 * pulls.max() <= 4 * math.sqrt(2)
    # Lemma 22 at t = 6n_i/(√2·η·ε·Δ): Lemma 15 with √2, minus Lemma 16.
    growth = 6 / math.sqrt(2) * (math.sqrt(2) / math.sqrt(2) - 1 / (4 * math.sqrt(2)))
    assert growth - math.sqrt(2) / 4 - 1 / 4 >= 1


def test_gates_without_influence_become_minus_one():
    circuit, distribution = (
        Circuit.parse("LEFT / LEFT TRUE"),
        ProductDistribution(np.array([0.7, 0.4, 0.6, 0.3])),
    )
    known = correlations(circuit, distribution)
    assert known.influence[1][1] == 0 and known.mean_label > 0
    values = learned(circuit, distribution, known.margin).layers[1].values
    assert np.all(values[1] == -1) and np.any(values[0] == 1)
    printed = learned(circuit, distribution, known.margin, printed_sign=True).layers[1].values
    assert np.all(printed[1] == 1)


def test_influence_is_that_on_the_output():
    circuit = Circuit.parse("LEFT / LEFT LEFT")
    x = all_inputs(4)
    flipped = x.copy()
    flipped[:, 2] ^= True
    level = [plain_evaluation(circuit, part)[1] for part in (x, flipped)]
    assert np.all(np.any(level[0] != level[1], axis=1)), "flipping x3 always changes its level"
    assert enumerated_influences(circuit)[2][2] == 0


def test_the_printed_parity_circuit_breaks_lca():
    for relevant in itertools.combinations(range(8), 3):
        distribution = ProductDistribution(np.full(8, 0.75))
        printed, corrected = (
            correlations(parity_circuit(8, relevant, printed=printed), distribution)
            for printed in (True, False)
        )
        assert printed.margin == pytest.approx(0, abs=1e-12)
        assert corrected.margin == pytest.approx(0.125)


def test_lemma_8_is_an_equality_at_the_inputs():
    for d in (1, 2, 3, 4):
        circuit = Circuit(np.random.default_rng(d).choice([8, 14, 7, 1], 2**d - 1))
        known = correlations(circuit, GenerativeDistribution(circuit))
        assert known.mean_label == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(np.abs(known.c[d]), (2 / 3) ** d, rtol=1e-12)
        np.testing.assert_allclose(np.abs(known.c[d - 1]), 1.5 * (2 / 3) ** d, rtol=1e-12)


def printed_recursion(circuit):
    """Return the minimum P(x_j = 1 | y = 1) by the printed recursion of Lemma 8 (proof)."""
    recursion = {
        "AND": (2 / 3, -1 / 3),
        "OR": (2 / 3, 0.0),
        "NAND": (-2 / 3, 1.0),
        "NOR": (-2 / 3, 2 / 3),
    }
    p, minimum = np.ones(1), 1.0
    for gates in circuit.levels:
        a, b = np.array([recursion[NAMES[gate]] for gate in gates]).T
        p = np.repeat(a * p + b, 2)
        minimum = min(minimum, float(p.min()))
    return minimum


def test_the_recursion_of_lemma_8_as_printed_gives_a_negative_probability():
    assert printed_recursion(Circuit.parse("AND / AND AND")) == pytest.approx(-1 / 9)
    # Corrected: P(x_j = 1 | y = 1) by enumerating all inputs.
    circuit = Circuit.parse("AND / OR AND")
    x = all_inputs(4)
    mass = np.where(plain_evaluation(circuit, x)[0][:, 0] == 1, np.asarray(_generative(circuit)), 0)
    np.testing.assert_allclose(mass @ x / mass.sum(), [2 / 3, 2 / 3, 1, 1])


def _generative(circuit):
    from unlazy.papers.malach2019.computations import generative_masses

    return generative_masses(circuit)


def test_the_bound_of_theorem_12_needs_the_margin():
    half, gamma = 8, 0.01
    left = 4 * half * rounding_steps(1, 1, half, gamma)
    assert left == 108_800 > 24 * half**2 == 1536 and left <= 24 * half**2 / gamma


def term_network(m):
    """(w, v, b, u) of a two-layer network for f_m with weights in [−1, 1]: one neuron for each of
    the m^{2m} choices of a term in every clause, 2m times, and a constant one. Its margin is ½.

    A neuron is 1/(2m) where all its 2m inputs are +1, and 0 elsewhere.
    """
    choices = np.array(list(itertools.product(range(m * m), repeat=m)))
    w = np.zeros((len(choices), m, m * m))
    w[np.arange(len(choices))[:, None], np.arange(m), choices] = 1 / (2 * m)
    w = np.repeat(w.reshape(len(choices), m**3), 2 * m, axis=0)
    b, u = np.full(len(w), -(2 * m - 1) / (2 * m)), np.ones(len(w))
    return (
        np.vstack([w, np.zeros((1, m**3))]),
        np.vstack([w, np.zeros((1, m**3))]),
        np.append(b, 0.5),
        np.append(u, -1.0),
    )


def test_f_m_has_a_network_of_fewer_neurons_than_corollary_13_says():
    for m in (1, 2):
        w, v, b, u = term_network(m)
        assert len(u) == 2 * m * m ** (2 * m) + 1 and all(
            np.abs(part).max() <= 1 for part in (w, v, b, u)
        )
        assert (
            network_matrix(w, v, b, u) * sign_matrix(razborov_sherstov(m))
        ).min() == pytest.approx(0.5)
    exponent = [math.log2(2 * m * m ** (2 * m) + 1) / (2 * m**3) for m in (2, 4, 8, 16, 32)]
    assert all(a > b for a, b in itertools.pairwise(exponent)) and exponent[-1] < 0.01, (
        "log₂(neurons)/n must tend to 0"
    )
