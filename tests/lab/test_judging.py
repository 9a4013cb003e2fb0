import dataclasses
import json
import math

import numpy as np
import pytest
import scipy.stats

from toys import hand_record
from unlazy.core.errors import BadInput
from unlazy.lab import registry as lookup
from unlazy.lab.arms import Row
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.judging import judge, level_of
from unlazy.lab.rules import SCALES, Check, Control, Published, Quantity
from unlazy.lab.statistics import (
    estimate,
    estimate_of,
    holm,
    runs_for_share,
    seeds_for,
    share_interval,
)

ACCURACY = Quantity("Network", "test_accuracy")


def claim(**changes):
    fields = {
        "id": "test/one",
        "where": "Table 0",
        "kind": "table",
        "statement": "Networks are right.",
        "study": lambda scale: {},
        "checks": (Check(ACCURACY, lower=99.0),),
        "published": (Published(ACCURACY, "100", 0.25),),
    }
    return Claim(**(fields | changes))


def records(*values, **options):
    return {
        "Network": [
            hand_record(f"{i}", seed=i, test_accuracy=v, **options) for i, v in enumerate(values)
        ]
    }


def outcome(*values, scale="paper", **changes):
    return judge(claim(**changes), scale, records(*values)).outcome


def test_interval_is_students():
    values = [1.0, 2.0, 4.0]
    low, high = scipy.stats.t.interval(0.95, 2, loc=7 / 3, scale=scipy.stats.sem(values))
    found = estimate(values)
    assert (found.mean, found.low, found.high, found.seeds) == pytest.approx((7 / 3, low, high, 3))
    assert math.isinf(estimate([1.0]).high) and estimate([1.0], exact=True).half == 0


def test_exact_computations_are_judged_at_every_scale():
    assert outcome(100, min_seeds=1, scale="smoke") == "holds"
    assert outcome(90, min_seeds=1, scale="smoke") == "fails"
    assert outcome(*[90] * 5, scale="smoke") == "undecided"
    exact = (Check(ACCURACY, lower=99.0).exactly(),)
    assert outcome(*[90] * 5, scale="smoke", checks=exact) == "fails"
    named = (Check(ACCURACY, lower=99.0).exactly().at("paper"),)
    assert outcome(*[90] * 5, scale="laptop", checks=named) == "undecided"


def test_the_word_of_a_verdict_says_what_was_tested():
    values = (0.01, 0.012, 0.011)
    ratio = Quantity("Network", "test_loss")
    run = {"Network": [hand_record(f"{i}", seed=i, test_loss=v) for i, v in enumerate(values)]}

    def word(check, **changes):
        return judge(claim(checks=(check,), published=(), **changes), "paper", run)

    loose = word((ratio <= 1.0).by_paper())
    assert loose.outcome == "holds, loosely" and loose.slack == pytest.approx(1 / 0.011)
    assert word(ratio <= 1.0).outcome == "holds", "only bounds of the paper can be loose"
    assert word((ratio <= 0.05).by_paper()).outcome == "holds"
    assert word((ratio <= 1.0).by_paper(), corrections=("test/error",)).outcome == (
        "holds after correction"
    )
    assert word(ratio <= 1.0, source="definition").outcome == "definition checked"
    assert word(ratio <= 0.001, source="definition").outcome == "fails"
    for bound, seen in ((1.0, "holds"), (0.001, "fails")):
        ours = word(ratio <= bound, source="ours")
        assert (ours.outcome, ours.seen) == ("ours", seen)
        limit = word(ratio <= bound, asymptotic="true for large d")
        assert (limit.outcome, limit.seen) == ("not testable at finite size", seen)
        assert "true for large d" in limit.reason


def test_a_check_that_holds_in_the_control_can_only_refute():
    both = (Check(ACCURACY, lower=99.0), Check(ACCURACY, upper=99.9).refuting())
    assert "(can only refute)" in claim(checks=both).rule
    assert outcome(99.5, 99.6, 99.7, checks=both) == "holds"
    assert outcome(99.8, 99.9, 99.95, checks=both) == "holds"  # undecided, but not needed
    assert outcome(99.98, 99.99, 100.0, checks=both) == "fails"


def test_an_open_constant_is_one_and_the_verdict_states_for_which_it_holds():
    condition = Condition("n ≥ C d", lambda scale: 30.0, lambda scale: 1000.0, constant="C")
    verdict = judge(claim(conditions=(condition,)), "paper", records(99.5, 99.6, 99.7))
    assert verdict.outcome == "assumptions not met"
    assert "required ≥ 1e+03 with C = 1; holds for C ≤ 0.03" in verdict.reason
    below = Condition("a ≤ C b", lambda scale: 5.0, lambda scale: 10.0, "≤", "C")
    (met,) = judge(claim(conditions=(below,)), "paper", records(99.5, 99.6, 99.7)).conditions
    assert met.met and met.constants == "C ≥ 0.5"


def test_an_exact_claim_needs_one_run():
    assert outcome(100, min_seeds=1) == "holds" and outcome(90, min_seeds=1) == "fails"
    assert outcome(100) == "undecided"
    assert "computed exactly" in claim(min_seeds=1).rule


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((99.5, 99.6, 99.7), "holds"),
        ((90, 90.1, 89.9), "fails"),
        ((98.8, 99.1, 99.4), "undecided"),
        ((100, 100.0), "undecided"),
        ((100, 100, float("nan")), "fails"),
        ((100, 100, 100), "undecided"),  # three equal values are not conclusive
        ((100, 100, 100, 100, 100), "holds"),
        ((90, 90, 90), "undecided"),
        ((90, 90, 90, 90, 90), "fails"),
    ],
)
def test_outcomes(values, expected):
    assert outcome(*values) == expected


def test_equal_values_of_an_exact_check_are_conclusive():
    check = Check(ACCURACY, lower=99.0, exact=True)
    assert (
        outcome(100, 100, 100, checks=(check,)) == "holds"
        and outcome(90, 90, 90, checks=(check,)) == "fails"
    )
    assert outcome(98.8, 99.1, 99.4, checks=(check,)) == "undecided"  # it is not exact


def test_intervals_end_where_the_quantity_does():
    found = judge(claim(), "paper", records(99, 100, 100)).check_results[0].measured
    assert found.high == 100 and found.low < 99
    assert estimate_of("test_accuracy", [99.0, 100.0, 100.0]).high == 100, (
        "also in benchmarks and figures"
    )
    assert estimate_of("slope", [99.0, 100.0, 100.0]).high > 100 and math.isinf(
        estimate_of("test_accuracy", [99.0]).high
    )


def test_a_fraction_of_seeds_is_tested_by_clopper_and_pearson():
    check = Check(ACCURACY, lower=99.0, share=0.5)
    assert outcome(*[100.0] * 4, 99.5, checks=(check,)) == "holds"
    assert outcome(*[100.0] * 4, 50.0, checks=(check,)) == "undecided"
    assert outcome(*[50.0] * 4, 60.0, checks=(check,)) == "fails"
    assert outcome(*[100.0] * 7, 50.0, checks=(check,)) == "holds"
    assert share_interval(5, 5)[0] == pytest.approx(0.05 ** (1 / 5)) and share_interval(0, 5)[
        1
    ] == pytest.approx(1 - 0.05 ** (1 / 5))
    assert runs_for_share(0.5) == 5 and runs_for_share(0.7) == 9


def test_a_learner_that_succeeds_in_seven_of_ten_runs_seldom_passes_a_check_for_nine():
    """With success probability 0.7, a check for more than 90 % of seeds seldom holds."""
    draw = np.random.default_rng(0)
    certain = Check(ACCURACY, lower=99.0, share=0.9)
    held = [
        outcome(*np.where(draw.random(20) < 0.7, 100.0, 50.0), checks=(certain,)) == "holds"
        for _ in range(300)
    ]
    assert np.mean(held) < 0.02


def test_the_familywise_error_of_many_checks_is_controlled():
    """If all means are at their bounds, some check fails in at most 5 % of the cases."""
    draw = np.random.default_rng(1)
    arms = [f"arm {i}" for i in range(20)]
    many = claim(checks=tuple(Check(Quantity(arm, "x"), lower=0.0) for arm in arms), published=())
    failed = 0
    for _ in range(200):
        found = {
            arm: [
                hand_record(f"{arm}{i}", seed=i, x=float(v))
                for i, v in enumerate(draw.normal(size=5))
            ]
            for arm in arms
        }
        failed += judge(many, "paper", found).outcome == "fails"
    assert failed / 200 < 0.09
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_planned_number_of_seeds_has_the_stated_power():
    draw = np.random.default_rng(2)
    for distance in (1.0, 2.0):
        count = seeds_for(distance)
        held = [estimate(draw.normal(distance, 1.0, size=count)).low > 0 for _ in range(2000)]
        assert 0.88 < np.mean(held) < 0.96
    assert "seeds would be conclusive" in judge(claim(), "paper", records(98.8, 99.1, 99.4)).reason


def test_interim_analysis_keeps_the_total_error():
    """With the mean at the bound, four interim analysis steps together err in at most 5 %."""
    draw = np.random.default_rng(3)
    wrong = 0
    for _ in range(2000):
        values = draw.normal(0.0, 1.0, size=40)
        wrong += any(
            estimate(values[: 5 << (look - 1)], level=level_of(look)).low > 0
            for look in (1, 2, 3, 4)
        )
    assert wrong / 2000 < 0.03 and level_of(0) == 0.95 and level_of(1) == 0.975


def test_checks_that_cannot_fail_are_refused():
    with pytest.raises(BadInput, match="cannot fail"):
        Check(ACCURACY, lower=0.0)
    with pytest.raises(BadInput, match="cannot fail"):
        Check(Quantity("Network", "cosine"), lower=-1.0, upper=1.0)
    with pytest.raises(BadInput, match="above the upper"):
        Check(ACCURACY, lower=60.0, upper=50.0)


def test_pairs_are_compared_seed_by_seed():
    found = {
        "Network": [hand_record(f"n{i}", seed=i, test_accuracy=80.0 + 5 * i) for i in range(4)],
        "Kernel": [
            hand_record(f"k{i}", seed=i, test_accuracy=70.0 + 5 * i + 0.1 * (i % 2))
            for i in range(4)
        ],
    }
    gap = Quantity("Network", "test_accuracy", minus=Quantity("Kernel", "test_accuracy"))
    verdict = judge(claim(checks=(Check(gap, lower=9.0),), published=()), "paper", found)
    assert (
        verdict.outcome == "holds"
        and str(gap) == "Network test_accuracy − Kernel test_accuracy"
        and gap.range == (-100.0, 100.0)
    )


def test_an_identity_does_not_count_and_a_violated_one_prevents_a_verdict():
    identity = Check(ACCURACY, lower=99.0, origin="identity")
    assert outcome(99.5, 99.6, 99.7, checks=(identity,)) == "undecided"
    other = Check(ACCURACY, lower=80.0)
    assert outcome(99.5, 99.6, 99.7, checks=(identity, other)) == "holds"
    verdict = judge(claim(checks=(identity, other)), "paper", records(90, 90.1, 89.9))
    assert verdict.outcome == "undecided" and "identity" in verdict.reason


def test_without_its_assumptions_a_theorem_is_neither_confirmed_nor_refuted():
    wide = Condition("m ≥ k⁴", lambda scale: 200.0, lambda scale: 625.0)
    for values, seen in (((99.5, 99.6, 99.7), "holds"), ((90, 90.1, 89.9), "fails")):
        verdict = judge(claim(conditions=(wide,)), "paper", records(*values))
        assert (
            verdict.outcome == "assumptions not met"
            and verdict.seen == seen
            and "missed by a factor of 3.12" in verdict.reason
            and ("Despite this, all checks hold" in verdict.reason) == (seen == "holds")
        )
    assert verdict.to_json()["hypotheses"][0]["factor"] == pytest.approx(3.125)
    met = Condition("accuracy ≤ 100", ACCURACY, lambda scale: 100.0, "≤")
    assert judge(claim(conditions=(met,)), "paper", records(99.5, 99.6, 99.7)).outcome == "holds"


def test_a_corrected_statement_says_so():
    assert outcome(99.5, 99.6, 99.7, corrections=("test/error",)) == "holds after correction"
    assert outcome(90, 90.1, 89.9, corrections=("test/error",)) == "fails"


def test_a_control_is_tested_by_the_same_criteria():
    false = claim(control=Control("no network", lambda scale: {}))
    good, bad = records(99.5, 99.6, 99.7), records(50, 50.1, 49.9)
    assert judge(false, "paper", good).to_json()["control"] == {
        "what": "no network",
        "verdict": "not run",
        "held": [],
        "checks": [],
        "seeds": 0,
        "power": None,
    }
    assert judge(false, "paper", good, control=bad).control.outcome == "fails"
    assert judge(false, "paper", good, control=good).control.held == ("Network test_accuracy ≥ 99",)


def test_bands_have_two_sides():
    check = Check(ACCURACY, lower=50, upper=60)
    assert outcome(55, 55.1, 55.2, checks=(check,)) == "holds"
    assert outcome(65, 65.1, 65.2, checks=(check,)) == "fails"
    assert outcome(45, 45.1, 45.2, checks=(check,)) == "fails"
    assert outcome(59, 60, 61, checks=(check,)) == "undecided"


def test_one_failing_check_fails_the_claim():
    checks = (Check(ACCURACY, lower=99.0), Check(ACCURACY, upper=99.5))
    assert outcome(*[100] * 8, checks=checks) == "fails"


def test_a_scale_without_checks_decides_nothing():
    verdict = judge(claim(), "smoke", records(100, 100, 100))
    assert verdict.outcome == "undecided" and "only tests that everything runs" in verdict.reason


def test_published_values_are_reproduced_or_not_or_undecided():
    """Printed 100 with a deviation of 0.25: the margin is 0.5 + 2 · 0.25."""
    numbers = judge(claim(), "paper", records(99.9, 99.8, 99.9)).numbers
    assert (numbers.reproduced, numbers.of, str(numbers)) == (1, 1, "reproduced (1 of 1)")
    missed = judge(claim(), "paper", records(98.2, 98.3, 98.2)).numbers
    assert (
        str(missed) == "not reproduced (0 of 1)"
        and "published 100 ± 1, measured 98.23" in missed.lines[0]
    )
    unsure = judge(claim(), "paper", records(98.2, 99.9, 99.9)).numbers
    assert unsure.reproduced == 0 and unsure.lines[0].endswith("(undecided)")
    assert judge(claim(), "paper", records(float("nan"), 1, 1)).numbers.reproduced == 0
    assert Published(ACCURACY, "0.848").margin == pytest.approx(0.0005)


def test_diverged_runs_and_records_of_other_code_are_counted():
    verdict = judge(claim(), "paper", records(100, 100, 100, status="diverged"), older=2)
    assert verdict.diverged == verdict.trials == 3 and verdict.to_json()["older"] == 2


def test_records_older_than_the_criteria_are_counted():
    found = records(100, 100, 100, created="2026-01-02")
    assert judge(claim(), "paper", found, registered="2026-01-03").older_than_rule == 3
    assert judge(claim(), "paper", found, registered="2026-01-01").older_than_rule == 0


def test_json_has_the_promised_fields_and_is_strict_json():
    verdict = judge(claim(), "paper", records(100))
    data = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert {
        "id",
        "verdict",
        "rule",
        "published",
        "measured",
        "interval",
        "seeds",
        "seconds",
        "deviations",
    } <= data.keys()
    assert (
        data["numbers"] == {"reproduced": 0, "of": 1}
        and {"hypotheses", "control", "history", "corrections", "seen"} <= data.keys()
    )
    assert data["published"] == {"Network test_accuracy": 100.0} and data["interval"] == {
        "Network test_accuracy": [0.0, 100.0]
    }


CLAIMS = lookup.claims()


def made_up(claim, scale, change=None):
    """Return records by arm that satisfy every check of a claim; `change` overrides one quantity.

    For a difference, the first quantity is changed if no check fixes it, else the second; none if
    both are fixed and the difference is right.
    """
    checks = sorted(
        claim.checks_at(scale),
        key=lambda check: check.quantity.minus is not None,
    )
    good = {}
    for check in checks:
        low, high = check.lower, check.upper
        inside = (
            high - abs(high) / 1000
            if math.isinf(low)
            else low + abs(low) / 1000
            if math.isinf(high)
            else (low + high) / 2
        )
        value, other = (change or {}).get(check.quantity, inside), check.quantity.minus
        own = dataclasses.replace(check.quantity, minus=None)
        if other is None:
            good[own] = value
        elif (
            own in good
            and other in good
            and check.quantity not in (change or {})
            and low <= good[own] - good[other] <= high
        ):
            continue
        elif own in good:
            good[other] = good[own] - value
        else:
            good[own] = good.setdefault(other, 0.0) + value
    named = [part for q in claim.quantities for part in (q, q.minus) if part]
    arms, measures = {q.arm for q in named}, {q.measure for q in named}
    last = 10**18  # the step of quantities without one
    steps = [*sorted({q.step for q in named} - {None}), last]

    def series(arm, measure):
        return tuple(good.get(Quantity(arm, measure, None if s == last else s), 0.0) for s in steps)

    return {
        arm: [
            hand_record(f"{arm}{i}", seed=i, steps=steps, **{m: series(arm, m) for m in measures})
            for i in range(12)
        ]
        for arm in arms
    }


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_holds_and_every_bound_of_every_check_can_fail(name):
    """Made-up records satisfy the claim. One planted wrong value for one bound of one check turns
    the verdict to 'fails', or to 'undecided' if the check is a violated identity.
    """
    claim = dataclasses.replace(CLAIMS[name], conditions=())
    planted = 0
    for scale in SCALES:
        verdict = judge(claim, scale, made_up(claim, scale))
        supports = [check for check in claim.checks if check.supports]
        judged = [c for c in supports if c.applies(scale, exact=claim.exact)]
        complete = judged and (scale != "smoke" or all(c.scales or c in judged for c in supports))
        assert verdict.seen == ("holds" if complete else "undecided"), verdict.reason
        for check in claim.checks:
            for bound, sign in ((check.lower, -1), (check.upper, 1)):
                if check not in claim.checks_at(scale) or not math.isfinite(bound):
                    continue
                wrong = bound + sign * max(0.001, 0.01 * abs(bound))
                verdict = judge(claim, scale, made_up(claim, scale, {check.quantity: wrong}))
                expected = "fails" if check.counts else "undecided"
                assert verdict.seen == expected and str(check) in verdict.reason, (scale, check)
                planted += 1
    assert planted, "no check has a bound"


def test_a_network_at_ninety_percent_fails_table_1():
    planted = made_up(
        CLAIMS["shi2022/table1"], "paper", {Quantity("Network", "test_accuracy"): 90.0}
    )
    verdict = judge(CLAIMS["shi2022/table1"], "paper", planted)
    assert (
        verdict.outcome == "fails"
        and "Network test_accuracy ≥ 99, but measured 90" in verdict.reason
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_is_complete(name):
    """Arms and steps of checks and published values exist at every scale of the check."""
    claim = CLAIMS[name]
    assert claim.id == name and claim.where and claim.statement and claim.rule
    assert claim.seeds["paper"] >= claim.min_seeds and claim.seeds["laptop"] >= claim.min_seeds
    for scale in ("laptop", "paper"):
        arms = claim.arms(scale)
        # A published value may be of an arm that is run at paper scale only.
        published = [
            number.quantity
            for number in claim.published
            if scale == "paper" or number.quantity.arm in arms
        ]
        looked_at = [check.quantity for check in claim.checks_at(scale)] + published
        for quantity in [part for q in looked_at for part in (q, q.minus) if part]:
            arm = arms[quantity.arm]
            steps = tuple(arm.arms) if isinstance(arm, Row) else arm.trials([0])[0].steps
            assert quantity.step is None or quantity.step in steps


def test_claims_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CLAIMS["shi2022/table1"].checks = ()
