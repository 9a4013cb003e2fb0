"""The power of acceptance criteria on negative controls, by formula and by simulation."""

import numpy as np
import pytest

from toys import hand_record
from unlazy.lab.claims import Claim
from unlazy.lab.controls import ControlCheck, power, seeds_for_power
from unlazy.lab.judging import judge
from unlazy.lab.rules import Check, Quantity

FIRST, SECOND = Quantity("Network", "test_accuracy"), Quantity("Network", "ratio")
BOTH = (Check(FIRST, lower=90.0), Check(SECOND, upper=1.0))


def claim(*checks, **changes):
    fields = {"id": "test/one", "where": "", "kind": "table", "statement": "", "study": dict}
    return Claim(**(fields | {"checks": checks} | changes))


def control(*means_and_deviations, checks=BOTH):
    return [
        ControlCheck(str(check), "fails", *each)
        for check, each in zip(checks, means_and_deviations, strict=False)
    ]


def simulated(tested, seeds, mean, deviation, runs=400):
    """Return the fraction of simulated runs of the control in which the claim fails."""
    draw, failed = np.random.default_rng(0), 0
    for _ in range(runs):
        values = draw.normal(mean, deviation, seeds)
        records = [
            hand_record(f"{i}", seed=i, test_accuracy=float(v), ratio=0.5 + 0.1 * draw.normal())
            for i, v in enumerate(values)
        ]
        failed += judge(tested, "laptop", {"Network": records}).outcome == "fails"
    return failed / runs


@pytest.mark.parametrize(("mean", "deviation"), [(86.0, 3.0), (80.0, 5.0), (70.0, 1.0)])
def test_power_agrees_with_simulated_runs(mean, deviation):
    tested = claim(*BOTH)
    found = power(tested, control((mean, deviation), (0.5, 0.1)), 5)
    assert found == pytest.approx(simulated(tested, 5, mean, deviation), abs=0.06)


@pytest.mark.parametrize(("checks", "needed"), [(1, 5), (2, 6), (4, 7), (6, 7), (12, 8)])
def test_equal_values_need_more_seeds_the_more_checks_there_are(checks, needed):
    quantities = [Quantity("Network", f"q{i}") for i in range(checks)]
    tested = [Check(q, upper=1.0) for q in quantities]
    run = control(*[(19.14, 0.0)] + [(0.5, 0.1)] * (checks - 1), checks=tested)
    assert seeds_for_power(claim(*tested), run) == needed
    assert power(claim(*tested), run, needed - 1) == 0.0


def test_a_rule_that_holds_on_its_control_has_no_power():
    assert power(claim(*BOTH), control((95.0, 1.0), (0.5, 0.1)), 100) < 1e-6
    assert seeds_for_power(claim(*BOTH), control((95.0, 0.0), (0.5, 0.0))) is None


def test_an_exact_computation_has_power_one_with_one_seed():
    tested = claim(Check(SECOND, upper=1.0), min_seeds=1)
    run = control((2.0, 0.0), checks=tested.checks)
    assert power(tested, run, 1) == 1.0 and seeds_for_power(tested, run) == 1


def test_values_that_are_not_finite_fail_and_fractions_of_seeds_use_the_binomial():
    assert power(claim(*BOTH), control((None, None), (0.5, 0.1)), 3) == 1.0
    most = (Check(FIRST, lower=90.0).for_share(0.5),)
    assert power(claim(*most), control((50.0, 1.0), checks=most), 5) == pytest.approx(1.0)
    assert power(claim(*most), control((50.0, 1.0), checks=most), 4) == 0.0
    half = power(claim(*most), control((90.0, 1.0), checks=most), 5)
    assert half == pytest.approx(0.5**5)  # all five seeds below the bound
