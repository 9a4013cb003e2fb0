"""Verdicts as views, and the plots of their records."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from toys import hand_record
from unlazy.lab import registry
from unlazy.lab.claims import Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.judging import judge
from unlazy.lab.rules import Change, Check, Quantity
from unlazy.lab.statistics import Estimate, estimate_of
from unlazy.report.charts import chart
from unlazy.report.figures import draw
from unlazy.report.labels import bounds_of, number, quantity_label, spread
from unlazy.report.rules import rule_view
from unlazy.report.training import claim_plot, learning_curves
from unlazy.report.verdict_json import verdict_from_json
from unlazy.report.verdicts import control_word, notes
from unlazy.report.view import view_of


def cells(view, title):
    (table,) = (table for table in view.tables if table.title == title)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_published_and_measured_values_with_their_marks(verdict):
    shown = view_of(verdict)
    assert shown.takeaway == "All 2 checks pass, 1 of 2 published numbers consistent with our runs."
    table = next(table for table in shown.tables if table.title == "Published and measured")
    assert table.rows == (("Network", "100", "99.70 ± 0.25 ✓"), ("Kernel", "90", "72.20 ± 0.50 ✗"))
    assert [row["required"] for row in cells(shown, "Checks")] == ["≥ 90", "≤ 80"]
    assert shown.facts["numbers"] == "1 of 2 consistent (1 of 1 trivial ones)"
    assert shown.facts["control"] == "not run"


def test_a_failure_has_its_reasons_in_a_table_of_its_own(claim, records):
    gain = Quantity("Kernel", "test_accuracy", minus=Quantity("Network", "test_accuracy"))
    checks = (Check(gain, 0.0), Check(Quantity("Network", "test_accuracy"), 90.0))
    shown = view_of(judge(claim(checks=checks), "laptop", records))
    assert shown.status == "fails" and shown.takeaway.startswith("1 of 2 checks pass")
    (why,) = cells(shown, "Why it fails")
    assert (why["quantity"], why["paper"], why["measured (95 % CI)"]) == (
        "Kernel − Network: test accuracy (points)",
        "-10",
        "-27.50 ± 0.25",
    )
    assert shown.tables[-1].caption == "Passing: Network: test accuracy (%) 99.70 ± 0.25 (≥ 90)"


def test_errata_and_questions_of_a_claim_are_named(claim, records):
    asked = claim(corrections=("toy2020/typo",), discrepancies=("toy2020/size", "toy2020/rate"))
    for shown in (view_of(judge(asked, "laptop", records)), rule_view(asked, None)):
        lines = dict(shown.lines)
        assert lines["Errata applied"].startswith("toy2020/typo (")
        assert lines["Questions"].startswith("toy2020/size, toy2020/rate (")
    assert not {"Errata applied", "Questions"} & dict(rule_view(claim(), None).lines).keys()


def test_a_number_that_is_not_consistent_has_its_interval(verdict):
    (missed,) = (part for part in view_of(verdict).details if part.name == "numbers")
    assert missed.title == "1 inconsistent published number"
    assert missed.items[0].startswith(
        "Kernel: test accuracy (%): published 90, prediction interval"
    )


@pytest.mark.parametrize(
    ("paper", "index", "label"),
    [
        ("allenzhu2019/theorem1", 5, "α = 0.05"),
        ("malach2019/figure4", 3, "k = 3"),
        ("glasgow2023/spread", 1048576, "d = 1,048,576"),
    ],
)
def test_an_axis_that_is_not_training_has_its_name(paper, index, label):
    claim = registry.claims()[paper]
    (found, *_) = (q for q in claim.quantities if q.step == index)
    assert label in quantity_label(claim, found)
    assert "at step" not in quantity_label(claim, found)


def test_assumptions_and_controls_are_shown(claim, records):
    wide = Condition("m ≥ k⁴", lambda scale: 200.0, lambda scale: 625.0)
    shown = view_of(judge(claim(conditions=(wide,)), "laptop", records, control=records))
    (assumption,) = cells(shown, "Assumptions of the theorem")
    assert assumption["result"] == "✗ missed by a factor 3.125"
    assert shown.status == "assumptions not met" and "1 of 1 assumption not met" in shown.takeaway
    assert (
        "These checks hold there too: Network: test accuracy (%) ≥ 90"
        in dict(shown.lines)["Control"]
    )


def test_an_undecided_control_does_not_count_as_failed():
    assert control_word("fails") == "✓ rejected" and control_word("holds").startswith("✗")
    assert control_word("undecided") == "? undecided" and control_word("not run") == "not run"


def test_notes_name_seeds_sources_and_divergence(claim, records):
    def told(shift, **changes):
        moved = {
            arm: [dataclasses.replace(r, trial=r.trial | {"seed": r.seed + shift}) for r in found]
            for arm, found in records.items()
        }
        return " ".join(notes(judge(claim(**changes), "laptop", moved, older=9)))

    assert "not a held-out test" not in told(990)
    assert "3 of 3 seeds are below 1000 and were used for tuning" in told(-10)
    assert "used in development" in told(0)
    later = (Change("2026-11-17", "a bound was moved", "it was wrong", 1100),)
    assert "used to test an older version" in told(990, history=later)
    assert "9 of 9 records were made by other code, libraries or data" in told(990)


def test_one_seed_has_no_interval_and_the_smoke_scale_decides_nothing(claim, records):
    single = {arm: found[:1] for arm, found in records.items()}
    shown = view_of(judge(claim(), "smoke", single), records=single)
    assert shown.takeaway.startswith("The smoke scale only tests")
    assert shown.tables[0].rows[0][2] == "99.60 ?"
    curves = next(plot for plot in shown.plots if plot.steps)
    assert not any(series.low for series in curves.series)


def test_a_verdict_comes_back_from_its_json(verdict):
    told = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    again = verdict_from_json(told, verdict.claim)
    assert again.to_json() == told
    assert view_of(again).tables == view_of(verdict).tables
    former = verdict_from_json(told | {"verdict": "outside hypotheses"}, verdict.claim)
    assert former.outcome == "assumptions not met"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1 - 1e-12, math.inf, "≥ 1 − 1e-12"),
        (1 + 1e-12, math.inf, "≥ 1 + 1e-12"),
        (1e-300, math.inf, "> 0"),
        (-math.inf, 0.25, "≤ 0.25"),
        (1 - 1e-9, 1 + 1e-9, "1 ± 1e-9"),
        (24, 72, "24 to 72"),
        (-1e-12, 1e-12, "0 ± 1e-12"),
        (2, 2, "= 2"),
    ],
)
def test_bounds_keep_their_tolerance(low, high, text):
    assert bounds_of(Check(Quantity("a", "b"), low, high)) == text


@pytest.mark.parametrize(
    ("measure", "values", "text"),
    [
        ("accuracy", [80.0, 81.0, 82.0], "81.00 ± 2.48"),
        ("accuracy", [100.0, 99.5, 100.0], "99.83 [99.12, 100]"),
        ("test_accuracy", [50.0, 100.0], "75.00 [0, 100]"),
        ("accuracy", [100.0, 100.0], "100.00 ± 0.00"),
        ("squared_error", [0.0, 0.25], "0.125 [0, 1.713]"),
        ("accuracy", [75.0], "75.00"),
    ],
)
def test_a_clipped_interval_is_printed_by_its_ends(measure, values, text):
    assert spread(estimate_of(measure, values), measure) == text


def test_rounding_is_no_clipping():
    assert spread(Estimate(1.484, 1.306, 1.661, 5), "deviation") == "1.48 ± 0.18"
    assert spread(Estimate(97.484, 94.968, 100.0, 5), "accuracy") == "97.48 ± 2.52"


def test_labels_of_quantities(claim):
    early, late = Quantity("A", "cosine", 1), Quantity("A", "cosine", 2)
    assert quantity_label(claim(), late) == "A: cosine at step 2"
    both = dataclasses.replace(late, minus=early)
    assert quantity_label(claim(), both) == "A: cosine at step 2 − cosine at step 1"
    assert number(-0.0001, "cosine") == "0.000" and number(math.nan) == "–"


def test_curves_are_of_arms_with_more_than_three_steps(verdict, records):
    plot = learning_curves(verdict, records)
    curves = [series for series in plot.series if series.kind == "measured"]
    assert [series.name for series in curves] == ["Network", "Kernel"]
    assert curves[0].y[-1] == pytest.approx(99.7) and max(curves[0].high) <= 100
    published = {s.group: s.y[0] for s in plot.series if s.kind == "published"}
    assert published == {"Network": 100.0, "Kernel": 90.0}
    panels = draw(plot).axes
    assert [axes.get_title(loc="left").splitlines() for axes in panels] == [
        ["Network", "99.70 ± 0.25 at the last step"],
        ["Kernel", "72.20 ± 0.50 at the last step"],
    ]
    bands = [trace for trace in chart(plot)["data"] if trace["name"] == "intervals"]
    assert [(t["visible"], t["showlegend"]) for t in bands] == [
        ("legendonly", True),
        ("legendonly", False),
    ]
    assert learning_curves(verdict, {"Readout": records["Readout"]}) is None


def test_values_that_are_not_finite_leave_a_gap(claim, records, network_record):
    arrays = {name: array.copy() for name, array in network_record().arrays.items()}
    arrays["neurons"][3:] = np.nan
    records["Network"][0] = network_record(
        status="diverged",
        arrays=arrays,
        test_accuracy=(50, 50, 50, math.inf, math.nan),
        cosine=(0.1, 0.9, 0.9, math.nan, math.nan),
    )
    with np.errstate(invalid="ignore"):
        verdict = judge(claim(), "laptop", records)
    shown = view_of(verdict, records=records)
    assert any("1 of 9 runs diverged" in note for note in shown.notes)
    curves, neurons = shown.all_plots
    assert math.isnan(curves.series[0].y[-1])
    assert "12 of 12 neurons not finite" in neurons.frames[-1].caption
    for plot in shown.all_plots:
        json.dumps(chart(plot), allow_nan=False)
        draw(plot).canvas.draw()


def test_curves_follow_the_metric_of_the_records(claim, records):
    """Squared errors have a curve too, without chance; several classes have no chance of 50 %."""
    errors = {"test_squared_error": (1.0, 0.8, 0.5, 0.2, 0.1)}
    real = {
        arm: [dataclasses.replace(r, measurements=errors) for r in found]
        for arm, found in records.items()
        if arm != "Readout"
    }
    plot = learning_curves(judge(claim(checks=(), published=()), "laptop", real), real)
    assert plot.y == "test squared error" and not any(s.kind == "chance" for s in plot.series)
    many = {
        arm: [
            dataclasses.replace(r, trial=r.trial | {"family": {"type": "Digits", "classes": 10}})
            for r in found
        ]
        for arm, found in records.items()
    }
    plot = learning_curves(judge(claim(), "laptop", many), many)
    assert not any(series.kind == "chance" for series in plot.series)


RECORDS = {
    "A": [
        hand_record(
            f"a{i}", seed=i, steps=(1, 10, 100), error=(3.0 + i, 2.0, 1.0), size=(4.0, 2.0, 8.0)
        )
        for i in range(3)
    ],
    "B": [hand_record("b", steps=(0, 10, 100), error=(0.0, math.nan, 7.0))],
}


def test_plots_of_claims_are_means_with_intervals_of_what_was_measured():
    lines = (
        PlotLine("A", "error", "measured"),
        PlotLine("A", "error", "by size", x="size"),
        PlotLine("B", "error", "alone", theory=True),
        PlotLine("B", "absent", "not there"),
        PlotLine("C", "error", "no such arm"),
    )
    plot = claim_plot(Plot("Error by n", "n", "error", lines, log_x=True, log_y=True), RECORDS)
    measured, by_size, alone = plot.series
    assert measured.x == (1, 10, 100) and measured.y == (4, 2, 1)
    assert measured.low[0] < 3 < 5 < measured.high[0]
    assert by_size.x == (2, 4, 8) and by_size.y == (2, 4, 1), "sorted along the axis"
    assert alone.kind == "theory" and alone.low == ()
    assert alone.x == (10, 100), "zero has no place on a logarithmic axis"
