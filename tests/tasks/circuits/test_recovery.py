import numpy as np
import pytest

from unlazy.papers.malach2019.computations import all_inputs, generative_masses, plain_evaluation
from unlazy.tasks.circuits.circuit import NAMES, Circuit
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    MixtureDistribution,
    ProductDistribution,
    WeightedSample,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.recovery import (
    PopulationStatistics,
    WeightedSampleStatistics,
    error,
    recovery,
)


@pytest.mark.parametrize("seed", range(4))
def test_errors_and_statistics_of_any_circuit_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    target, learned, p = random_circuit(8, rng), random_circuit(8, rng, NAMES), rng.random(8)
    x = all_inputs(8)
    wrong = plain_evaluation(target, x)[0] != plain_evaluation(learned, x)[0]
    product = np.prod(np.where(x, p, 1 - p), axis=1)
    mixture = MixtureDistribution(
        (0.4, 0.6), (GenerativeDistribution(target), ProductDistribution(p))
    )
    generative = generative_masses(target)
    for distribution, mass in (
        (ProductDistribution(p), product),
        (GenerativeDistribution(target), generative),
        (mixture, 0.4 * generative + 0.6 * product),
    ):
        assert error(target, distribution, learned) == pytest.approx(
            float(mass @ wrong[:, 0]), abs=1e-12
        )
        sample = WeightedSampleStatistics(
            WeightedSample(x, plain_evaluation(target, x)[0][:, 0] > 0, mass)
        )
        for count in range(3):
            below = learned.levels[::-1][:count]
            np.testing.assert_allclose(
                PopulationStatistics(target, distribution).table(below),
                sample.table(below),
                atol=1e-12,
            )


def test_a_circuit_is_recovered_up_to_the_signs_of_inner_gates():
    target = Circuit.parse("OR / AND NAND")
    distribution = GenerativeDistribution(target)
    for text in ("OR / AND NAND", "NAND / NAND AND", "GE / AND AND"):
        seen = recovery(target, distribution, Circuit.parse(text))
        assert seen.exact and seen.error == 0, text
    wrong = recovery(target, distribution, Circuit.parse("OR / AND NOR"))
    assert (
        wrong.status[1].tolist() == [1, -1]
        and wrong.error > 0
        and not wrong.exact
        and 0 < wrong.share < 1
    )


def test_gates_without_influence_do_not_count():
    target = parity_circuit(8, [0, 1])
    seen = recovery(
        target,
        ProductDistribution(np.full(8, 0.75)),
        Circuit.parse("LEFT / LEFT XOR / XNOR OR AND NOR"),
    )
    assert seen.exact and (np.concatenate(seen.status) == 0).sum() == 4
