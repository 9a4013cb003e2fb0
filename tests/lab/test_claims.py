"""What every claim must have, whatever it claims: a control, a history that goes forward, errata
that are proved.
"""

import dataclasses
from pathlib import Path

import pytest

from unlazy.lab import registry
from unlazy.lab.arms import shuffled_labels
from unlazy.lab.rules import EVALUATION, SCALES
from unlazy.studies.claim import null_of

CLAIMS, NOT_RUN, ERRATA = registry.claims(), registry.not_run(), registry.errata()
TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_has_a_control_that_its_rule_can_be_held_against(name):
    claim = CLAIMS[name]
    assert claim.control is not None and claim.control.what
    for scale in SCALES:
        world, own = claim.control.study(scale), claim.study(scale)
        assert world and world.keys() <= own.keys()
        judged = [
            c for c in claim.checks if c.counts and all(arm in world for arm in c.quantity.arms)
        ]
        assert judged, "no check that counts speaks of the control's arms"
        assert any(
            [t.key for t in arm.trials([0])] != [t.key for t in own[name].trials([0])]
            for name, arm in world.items()
        )


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_has_a_check_that_counts_at_both_scales(name):
    for scale in ("laptop", "paper"):
        assert any(check.counts and scale in check.scales for check in CLAIMS[name].checks)


@pytest.mark.parametrize("name", CLAIMS)
def test_conditions_are_numbers_and_histories_go_forward(name):
    claim = CLAIMS[name]
    for condition in claim.conditions:
        for scale in SCALES:
            assert float(condition.needed(scale)) == condition.needed(scale) and condition.text
    firsts = [change.first_seed for change in claim.history]
    assert (
        firsts == sorted(firsts)
        and all(first >= EVALUATION for first in firsts)
        and claim.first_seed >= EVALUATION
    )
    assert all(change.what and change.why and change.date >= "2026" for change in claim.history)


def test_rows_have_one_place_in_the_ledger():
    assert not CLAIMS.keys() & NOT_RUN.keys()
    assert all(
        row.statement and row.reason and row.to_json()["verdict"] == "not run"
        for row in NOT_RUN.values()
    )


def test_corrections_lead_to_errata_and_errata_to_tests():
    assert {name for claim in CLAIMS.values() for name in claim.corrections} <= ERRATA.keys()
    for erratum in ERRATA.values():
        path, _, function = erratum.test.partition("::")
        assert path.startswith("tests/") and f"def {function.partition('[')[0]}(" in (
            TESTS.parent / path
        ).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_null_of_every_claim_that_learns_has_other_trials():
    nulls = {name: null_of(claim) for name, claim in CLAIMS.items()}
    able = {name: null for name, null in nulls.items() if null is not None}
    assert 10 < len(able) < len(CLAIMS)
    assert all(nulls[name] is None for name, claim in CLAIMS.items() if claim.label_free_reason)
    for name, null in able.items():
        arms = CLAIMS[name].study("smoke")
        for arm, changed in null.study("smoke").items():
            same = [t.key for t in changed.trials([0])] == [t.key for t in arms[arm].trials([0])]
            assert same == (shuffled_labels(arms[arm]) is None)


def test_a_claim_that_was_changed_is_judged_on_later_seeds():
    claim = CLAIMS["shi2022/table1"]
    assert (
        claim.first_seed == 1100 and dataclasses.replace(claim, history=()).first_seed == EVALUATION
    )
