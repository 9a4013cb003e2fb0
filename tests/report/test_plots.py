"""Plots of claims: resolved from records, drawn for print and for the page."""

import dataclasses
import json
import math

import pytest

from toys import hand_record
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.judging import judge
from unlazy.lab.rules import Check, Quantity
from unlazy.report.figures import save_figures
from unlazy.report.page import page
from unlazy.report.plots import draw, lines, plot_chart

RECORDS = {
    "A": [
        hand_record(
            f"a{i}", seed=i, steps=(1, 10, 100), error=(3.0 + i, 2.0, 1.0), size=(4.0, 2.0, 8.0)
        )
        for i in range(3)
    ],
    "B": [hand_record("b", steps=(1, 10, 100), error=(9.0, math.nan, 7.0))],
}
SERIES = (
    PlotLine("A", "error", "measured"),
    PlotLine("A", "error", "by size", x="size"),
    PlotLine("B", "error", "alone <i>", theory=True),
    PlotLine("B", "absent", "not there"),
    PlotLine("C", "error", "no such arm"),
)
PLOT = Plot("Error by n", "n", "error", SERIES, log_x=True, log_y=True, caption="A caption.")


def test_lines_are_means_with_intervals_and_what_is_not_there_is_left_out():
    measured, by_size, alone = lines(PLOT, RECORDS)
    assert measured.x == (1, 10, 100) and [e.mean for e in measured.estimates] == [4, 2, 1]
    assert measured.band[0][0] < 3 < 5 < measured.band[1][0]
    assert by_size.x == (2, 4, 8) and [e.mean for e in by_size.estimates] == [2, 4, 1], (
        "sorted along the axis"
    )
    assert alone.theory and alone.band is None and math.isnan(alone.estimates[1].mean)


def test_a_plot_is_drawn_for_print():
    (axes,) = draw(PLOT, lines(PLOT, RECORDS)).axes
    assert axes.get_xscale() == axes.get_yscale() == "log" and len(axes.get_lines()) == 3
    assert axes.get_xlabel() == "n" and axes.get_title(loc="left") == "Error by n"
    assert axes.get_lines()[2].get_linestyle() == "--"


def test_a_plot_is_drawn_for_the_page_as_strict_json():
    chart = plot_chart(PLOT, lines(PLOT, RECORDS))
    json.dumps(chart, allow_nan=False)
    names = [trace["name"] for trace in chart["data"] if trace.get("showlegend", True)]
    assert (
        names == ["measured", "by size", "alone &lt;i&gt;"]
        and chart["layout"]["xaxis"]["type"] == "log"
    )
    assert (
        chart["data"][-1]["y"] == [9.0, None, 7.0] and chart["data"][-1]["line"]["dash"] == "dash"
    )


@pytest.fixture
def entry():
    claim = Claim(
        "x/y",
        "§1",
        "figure",
        "It falls.",
        lambda scale: {},
        (Check(Quantity("A", "error"), upper=2.0),),
        plots=(PLOT,),
    )
    return judge(claim, "paper", RECORDS), RECORDS


def test_a_claim_has_its_plots_on_the_page_and_among_the_figures(entry, tmp_path):
    text = page([entry])
    assert 'id="x-y-paper-error-by-n"' in text and "A caption." in text
    assert [path.name for path in save_figures(*entry, tmp_path)] == [
        f"x-y-paper-error-by-n.{kind}" for kind in ("csv", "png", "pdf")
    ]
    bare = dataclasses.replace(entry[0], claim=dataclasses.replace(entry[0].claim, plots=()))
    assert 'class="chart"' not in page([(bare, RECORDS)])
