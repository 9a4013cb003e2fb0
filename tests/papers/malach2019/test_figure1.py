"""Readings of Figure 1 of malach2019, and its rule on the fraction of seeds."""

import pytest

from toys import hand_record
from unlazy.lab.checking import judge_checks
from unlazy.networks.inits import AntisymmetricInit, PlainInit
from unlazy.papers.malach2019.figure1 import FIGURE1


@pytest.mark.parametrize(
    ("name", "kind", "rate", "steps"),
    [
        ("as written", PlainInit, 1e-3, 7_000),
        ("larger step", PlainInit, 3e-3, 7_000),
        ("pairs", AntisymmetricInit, 1e-3, 7_000),
        ("pairs, larger step", AntisymmetricInit, 3e-3, 7_000),
        ("twice the steps", PlainInit, 1e-3, 14_000),
    ],
)
def test_readings_have_128_neurons_and_differ_in_what_the_text_leaves_open(name, kind, rate, steps):
    claim = FIGURE1.under(name)
    own, control = claim.arms("laptop"), claim.control_arms("laptop")
    assert {arm: (each.family.p) for arm, each in own.items()} == {"uniform": 0.5, "biased": 0.6}
    assert own["biased"] == control["uniform"] and own["uniform"] == control["biased"]
    for each in own.values():
        (stage,) = each.learner.stages
        assert isinstance(each.learner.init, kind) and each.learner.init.width == 128
        assert set(stage.rates.values()) == {rate} and stage.steps == steps


@pytest.mark.parametrize(("successes", "outcome"), [(12, "holds"), (10, "holds"), (9, "undecided")])
def test_two_of_twelve_seeds_may_stay_on_the_plateau(successes, outcome):
    assert FIGURE1.seeds["laptop"] == FIGURE1.seeds["paper"] == 12
    biased = [100.0] * successes + [50.0 + seed / 10 for seed in range(12 - successes)]
    records = {
        name: [hand_record(seed=seed, test_accuracy=value) for seed, value in enumerate(values)]
        for name, values in {"biased": biased, "uniform": [49.5, 50.5] * 6}.items()
    }
    most, chance = judge_checks(FIGURE1, "laptop", records)
    assert most.outcome == outcome and chance.outcome == "holds"
    # With seeds that stay there in most runs, the check fails.
    records["biased"] = [hand_record(seed=s, test_accuracy=50.0 + s / 10) for s in range(12)]
    assert judge_checks(FIGURE1, "laptop", records)[0].outcome == "fails"
