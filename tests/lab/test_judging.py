import dataclasses
import json
import math

import pytest
import scipy.stats

from toys import hand_record
from unlazy.lab import registry as catalogue
from unlazy.lab.claims import SCALES, Check, Claim, Published, Quantity
from unlazy.lab.judging import judge
from unlazy.lab.statistics import estimate

ACCURACY = Quantity("Network", "test_accuracy")


def claim(**changes):
    fields = {
        "id": "test/one",
        "where": "Table 0",
        "kind": "table",
        "statement": "Networks are right.",
        "study": lambda scale: {},
        "checks": (Check(ACCURACY, lower=99.0),),
        "published": (Published(ACCURACY, 100.0, 0.5),),
    }
    return Claim(**(fields | changes))


def records(*values, **options):
    return {"Network": [hand_record(f"{i}", seed=i, test_accuracy=v, **options) for i, v in enumerate(values)]}


def outcome(*values, scale="paper", **changes):
    return judge(claim(**changes), scale, records(*values)).outcome


def test_interval_is_students():
    values = [1.0, 2.0, 4.0]
    low, high = scipy.stats.t.interval(0.95, 2, loc=7 / 3, scale=scipy.stats.sem(values))
    found = estimate(values)
    assert (found.mean, found.low, found.high, found.seeds) == pytest.approx((7 / 3, low, high, 3))
    assert math.isinf(estimate([1.0]).high) and estimate([1.0], exact=True).half == 0


def test_what_is_exact_needs_one_run():
    assert outcome(100, least_seeds=1) == "holds" and outcome(90, least_seeds=1) == "fails"
    assert outcome(100) == "undecided"
    assert "computed exactly" in claim(least_seeds=1).rule


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((100, 100, 100), "holds"),
        ((99.5, 99.6, 99.7), "holds"),
        ((90, 90.1, 89.9), "fails"),
        ((98.8, 99.1, 99.4), "undecided"),
        ((100, 100), "undecided"),
        ((100, 100, float("nan")), "fails"),
    ],
)
def test_outcomes(values, expected):
    assert outcome(*values) == expected


def test_bands_have_two_sides():
    check = Check(ACCURACY, lower=50, upper=60)
    assert outcome(55, 55.1, 55.2, checks=(check,)) == "holds"
    assert outcome(65, 65.1, 65.2, checks=(check,)) == "fails"
    assert outcome(45, 45.1, 45.2, checks=(check,)) == "fails"
    assert outcome(59, 60, 61, checks=(check,)) == "undecided"


def test_one_failing_check_fails_the_claim():
    checks = (Check(ACCURACY, lower=99.0), Check(ACCURACY, upper=99.5))
    assert outcome(100, 100, 100, checks=checks) == "fails"


def test_a_scale_without_checks_decides_nothing():
    verdict = judge(claim(), "smoke", records(100, 100, 100))
    assert verdict.outcome == "undecided" and "only shows that everything runs" in verdict.reason


def test_what_does_not_reproduce_is_named():
    assert judge(claim(), "paper", records(100, 100, 100)).not_reproduced == ()
    (line,) = judge(claim(), "paper", records(99.2, 99.2, 99.2)).not_reproduced
    assert line == "Network test_accuracy: published 100, measured 99.2"
    assert len(judge(claim(), "paper", records(float("nan"), 1, 1)).not_reproduced) == 1


def test_diverged_runs_and_other_sources_are_counted():
    verdict = judge(claim(), "paper", records(100, 100, 100, status="diverged", source="old"), source="new")
    assert verdict.diverged == verdict.other_source == verdict.trials == 3


def test_records_older_than_the_rule_are_counted():
    found = records(100, 100, 100, created="2026-01-02")
    assert judge(claim(), "paper", found, registered="2026-01-03").older_than_rule == 3
    assert judge(claim(), "paper", found, registered="2026-01-01").older_than_rule == 0


def test_json_has_the_promised_fields_and_is_strict_json():
    verdict = judge(claim(), "paper", records(100))
    data = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert {"id", "verdict", "rule", "published", "measured", "interval", "seeds", "seconds", "deviations"} <= data.keys()
    assert data["published"] == {"Network test_accuracy": 100.0} and data["interval"] == {"Network test_accuracy": [None, None]}


CLAIMS = catalogue.claims()
CHECKS = [(name, scale, i) for name, c in CLAIMS.items() for scale in SCALES for i, check in enumerate(c.checks) if scale in check.scales]


def made_up(claim, scale, change=None):
    """Records by arm that satisfy every check of a claim at a scale; `change` overrides the value of one quantity."""
    good = {}
    for check in claim.checks:
        if scale in check.scales:
            low, high = check.lower, check.upper
            inside = high - abs(high) / 1000 if math.isinf(low) else low + abs(low) / 1000 if math.isinf(high) else (low + high) / 2
            good[check.quantity] = inside
    good |= change or {}
    named = [c.quantity for c in claim.checks] + [p.quantity for p in claim.published]
    arms, measures = {q.arm for q in named}, {q.measure for q in named}
    steps = [*sorted({c.quantity.step for c in claim.checks} - {None}), 10**6]

    def series(arm, measure):
        return tuple(good.get(Quantity(arm, measure, None if s == 10**6 else s), 0.0) for s in steps)

    return {
        arm: [hand_record(f"{arm}{i}", seed=i, steps=steps, **{m: series(arm, m) for m in measures}) for i in range(claim.least_seeds)]
        for arm in arms
    }


@pytest.mark.parametrize(("name", "scale"), [(name, scale) for name in CLAIMS for scale in SCALES])
def test_every_claim_can_hold(name, scale):
    verdict = judge(CLAIMS[name], scale, made_up(CLAIMS[name], scale))
    assert verdict.outcome == ("holds" if verdict.judgements else "undecided")


@pytest.mark.parametrize(("name", "scale", "index"), CHECKS)
def test_every_check_of_every_claim_can_fail(name, scale, index):
    """A planted wrong value, one for each bound of each check, turns the verdict to 'fails'."""
    check = CLAIMS[name].checks[index]
    for bound, sign in ((check.lower, -1), (check.upper, 1)):
        if math.isfinite(bound):
            planted = made_up(CLAIMS[name], scale, {check.quantity: bound + sign * max(0.001, 0.01 * abs(bound))})
            verdict = judge(CLAIMS[name], scale, planted)
            assert verdict.outcome == "fails" and str(check) in verdict.reason


def test_a_network_at_ninety_percent_fails_table_1():
    planted = made_up(CLAIMS["shi2022/table1"], "paper", {Quantity("Network", "test_accuracy"): 90.0})
    verdict = judge(CLAIMS["shi2022/table1"], "paper", planted)
    assert verdict.outcome == "fails" and "Network test_accuracy ≥ 99.9, but 90 was measured" in verdict.reason


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_is_complete(name):
    """Checks and published values speak of arms, measures and steps that the study has, at every scale."""
    claim = CLAIMS[name]
    assert claim.id == name and claim.where and claim.statement and claim.rule
    assert claim.seeds["paper"] >= claim.least_seeds and claim.seeds["laptop"] >= claim.least_seeds
    for scale in SCALES:
        arms = claim.study(scale)
        for quantity in [c.quantity for c in claim.checks] + [p.quantity for p in claim.published]:
            steps = arms[quantity.arm].trials([0])[0].steps
            assert quantity.step is None or quantity.step in steps


def test_claims_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CLAIMS["shi2022/table1"].checks = ()
