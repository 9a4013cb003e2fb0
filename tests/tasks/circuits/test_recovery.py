import numpy as np
import pytest

from unlazy.papers.malach2019.instruments import all_inputs, generative_masses, plain_evaluation
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.laws import GenerativeLaw, MixtureLaw, ProductLaw, WeightedSample
from unlazy.tasks.circuits.recovery import LawStatistics, SampleLawStatistics, error, recovery


@pytest.mark.parametrize("seed", range(4))
def test_errors_and_statistics_of_any_circuit_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    target, learned, p = random_circuit(8, rng), random_circuit(8, rng, NAMES), rng.random(8)
    x = all_inputs(8)
    wrong = plain_evaluation(target, x)[0] != plain_evaluation(learned, x)[0]
    product = np.prod(np.where(x, p, 1 - p), axis=1)
    mixture = MixtureLaw((0.4, 0.6), (GenerativeLaw(target), ProductLaw(p)))
    generative = generative_masses(target)
    for law, mass in (
        (ProductLaw(p), product),
        (GenerativeLaw(target), generative),
        (mixture, 0.4 * generative + 0.6 * product),
    ):
        assert error(target, law, learned) == pytest.approx(float(mass @ wrong[:, 0]), abs=1e-12)
        sample = SampleLawStatistics(
            WeightedSample(x, plain_evaluation(target, x)[0][:, 0] > 0, mass)
        )
        for count in range(3):
            below = learned.levels[::-1][:count]
            np.testing.assert_allclose(
                LawStatistics(target, law).table(below), sample.table(below), atol=1e-12
            )


def test_a_circuit_is_recovered_up_to_the_signs_of_inner_gates():
    target = Circuit.parse("OR / AND NAND")
    law = GenerativeLaw(target)
    for text in ("OR / AND NAND", "NAND / NAND AND", "GE / AND AND"):
        seen = recovery(target, law, Circuit.parse(text))
        assert seen.exact and seen.error == 0, text
    wrong = recovery(target, law, Circuit.parse("OR / AND NOR"))
    assert (
        wrong.status[1].tolist() == [1, -1]
        and wrong.error > 0
        and not wrong.exact
        and 0 < wrong.share < 1
    )


def test_gates_without_influence_do_not_count():
    target = parity_circuit(8, [0, 1])
    seen = recovery(
        target, ProductLaw(np.full(8, 0.75)), Circuit.parse("LEFT / LEFT XOR / XNOR OR AND NOR")
    )
    assert seen.exact and (np.concatenate(seen.status) == 0).sum() == 4
