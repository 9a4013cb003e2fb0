"""Requirements of every claim: a negative control, an ordered history, and errata and questions to
the authors with tests.
"""

import dataclasses
from pathlib import Path

import pytest

from unlazy.lab import registry
from unlazy.lab.arms import shuffled_labels
from unlazy.lab.rules import EVALUATION, SCALES
from unlazy.studies.claim import null_of

CLAIMS, NOT_RUN, ERRATA = registry.claims(), registry.not_run(), registry.errata()
DISCREPANCIES, EDITIONS = registry.discrepancies(), registry.editions()
TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_has_a_control_to_which_its_criteria_apply(name):
    claim = CLAIMS[name]
    assert claim.control is not None and claim.control.what
    for scale in SCALES:
        control, own = claim.control_arms(scale), claim.arms(scale)
        assert control and control.keys() <= own.keys()
        judged = [
            c for c in claim.checks if c.counts and all(arm in control for arm in c.quantity.arms)
        ]
        assert judged, "no check that counts is on the arms of the control"
        assert any(
            [t.key for t in arm.trials([0])] != [t.key for t in own[name].trials([0])]
            for name, arm in control.items()
        )


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_has_a_check_that_counts_at_both_scales(name):
    for scale in ("laptop", "paper"):
        assert any(check.supports for check in CLAIMS[name].checks_at(scale))


@pytest.mark.parametrize("name", CLAIMS)
def test_conditions_are_numbers_and_histories_are_ordered(name):
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


def test_a_statement_is_either_a_claim_or_not_run():
    assert not CLAIMS.keys() & NOT_RUN.keys()
    assert all(
        row.statement and row.reason and row.to_json()["verdict"] == "not run"
        for row in NOT_RUN.values()
    )


def test_corrections_are_errata_and_errata_have_tests():
    assert {name for claim in CLAIMS.values() for name in claim.corrections} <= ERRATA.keys()
    for erratum in ERRATA.values():
        assert is_a_test(erratum.test)


def is_a_test(name):
    path, _, function = name.partition("::")
    return path.startswith("tests/") and f"def {function.partition('[')[0]}(" in (
        TESTS.parent / path
    ).read_text(encoding="utf-8")


def test_discrepancies_are_questions_with_tests():
    named = {name for claim in CLAIMS.values() for name in claim.discrepancies}
    assert named == DISCREPANCIES.keys() and not DISCREPANCIES.keys() & ERRATA.keys()
    for each in DISCREPANCIES.values():
        assert each.question.count("?") == 1 and each.question.endswith("?")
        assert all(dataclasses.astuple(each)) and is_a_test(each.test)


def test_discrepancies_are_no_part_of_the_rule():
    claim = CLAIMS["shi2022/table1"]
    assert claim.discrepancies and dataclasses.replace(claim, discrepancies=()).rule == claim.rule
    assert null_of(claim).discrepancies == (), "shuffled labels have no printed results"


def test_every_paper_states_which_text_was_read():
    papers = {name.partition("/")[0] for name in CLAIMS}
    assert papers <= EDITIONS.keys()
    assert all(text.startswith("The text ") and text.endswith(".") for text in EDITIONS.values())


@pytest.mark.slow
def test_a_null_of_every_claim_that_learns_has_other_trials():
    nulls = {name: null_of(claim) for name, claim in CLAIMS.items()}
    able = {name: null for name, null in nulls.items() if null is not None}
    assert 10 < len(able) < len(CLAIMS)
    assert all(nulls[name] is None for name, claim in CLAIMS.items() if claim.label_free_reason)
    for name, null in able.items():
        arms = CLAIMS[name].arms("smoke")
        for arm, changed in null.arms("smoke").items():
            same = [t.key for t in changed.trials([0])] == [t.key for t in arms[arm].trials([0])]
            assert same == (shuffled_labels(arms[arm]) is None)


def test_a_claim_that_was_changed_is_tested_on_later_seeds():
    claim = CLAIMS["shi2022/table1"]
    assert (
        claim.first_seed == 1300 and dataclasses.replace(claim, history=()).first_seed == EVALUATION
    )
