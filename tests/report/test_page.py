"""The page."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects
import pytest
from plotly.offline import get_plotlyjs

import unlazy
from unlazy.core.errors import BadInput
from unlazy.core.metrics import ACCURACY
from unlazy.lab.exponents import Needed, ScalingOutcome, ScalingRow
from unlazy.lab.judging import ControlVerdict, Numbers, judge
from unlazy.lab.outcomes import ContestOutcome, Place, Result
from unlazy.lab.rules import Change, Condition
from unlazy.report.charts import curve_chart, neuron_chart
from unlazy.report.figures import curves
from unlazy.report.page import page, write_page

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Outline(HTMLParser):
    """Tags, attributes and text of a page; checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def own(text):
    """The page without Plotly's own source."""
    return text.replace(get_plotlyjs(), "")


def outline(entries):
    return Outline(own(page(entries)))


def test_every_claim_with_its_verdict_and_numbers(verdict, records, claim):
    other = judge(claim(id="toy2021/bound"), "smoke", records)
    words = outline([(verdict, records), (other, records)]).words
    for part in (
        "toy2020/table9",
        "toy2021/bound",
        "A network wins & a kernel does not.",
        "Table 9",
        "✓ holds",
        "? undecided",
        "partly (1 of 2)",
        "no network at all: not run",
        "99.70 ± 0.25",
        "Kernel test_accuracy: published 90 ± 3, measured 71.1",
        "Fewer examples than in the paper.",
        "95 % interval",
        "the smoke scale only shows",
        unlazy.__version__,
    ):
        assert part in words, part


def test_a_failure_is_said_in_words(records, claim):
    failed = judge(claim(id="toy/fails"), "laptop", records | {"Network": records["Kernel"]})
    words = outline([(failed, records)]).words
    assert "✗ fails" in words
    assert "but 71.1 was measured" in words


def test_nothing_is_loaded_from_the_network(verdict, records):
    text = own(page([(verdict, records)]))
    assert not re.search(r"https?:|@import|url\(|//[a-z]", text)
    for _, attributes in Outline(text).tags:
        assert not {"src", "srcset", "data", "action"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    assert "default-src 'none'" in text


def test_plotly_is_there_once(verdict, records):
    assert page([(verdict, records), (verdict, records)]).count(get_plotlyjs()) == 1


def test_anchors_are_unique_and_all_links_lead_somewhere(verdict, records):
    tags = outline([(verdict, records)] * 3).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for tag, attributes in tags if tag == "a"} <= set(ids)
    assert {
        attributes["aria-labelledby"] for tag, attributes in tags if "aria-labelledby" in attributes
    } <= set(ids)


def test_text_is_escaped_everywhere(claim, records):
    evil = '</script><script>alert("1")</script>'
    arms = {
        f"Network{evil}": records["Network"],
        "Kernel": records["Kernel"],
        "Network": records["Network"],
    }
    spoilt = {
        "conditions": (Condition(evil, lambda scale: 1.0, lambda scale: 2.0),),
        "history": (Change(evil, evil, evil),),
    }
    bad = claim(id=f"x{evil}", statement=evil, where=evil, deviations=(evil,), **spoilt)
    verdict = dataclasses.replace(
        judge(bad, "laptop", arms),
        reason=evil,
        numbers=Numbers({}, (evil,)),
        control=ControlVerdict(evil, "fails", (evil,)),
    )
    for arm in arms.values():
        for record in arm:
            record.provenance[evil] = evil
    text = own(page([(verdict, arms)]))
    assert "alert(" in text
    assert "<script>alert" not in text
    tags = [tag for tag, _ in Outline(text).tags]
    assert tags.count("script") == 2 + 3  # Plotly and the page's own; three charts


def test_charts_are_what_plotly_understands(verdict, records):
    lines = curves(verdict, records)
    drawn = plotly.graph_objects.Figure(curve_chart(lines))
    assert [trace.name for trace in drawn.data if trace.mode == "lines+markers"] == [
        "Network",
        "Kernel",
    ]
    spec = neuron_chart(records["Network"][0])
    captions = spec.pop("captions")
    moving = plotly.graph_objects.Figure(spec)
    assert [frame.name for frame in moving.frames] == ["0", "1", "2", "10", "100"]
    assert [step.args[0][0] for step in moving.layout.sliders[0].steps] == [
        frame.name for frame in moving.frames
    ]
    assert captions["2"] == "Step 2: greatest cosine 0.990"
    stars = moving.frames[2].data[0], moving.frames[2].data[1]
    assert stars[0].x[0] == pytest.approx(1, abs=0.01)
    assert stars[1].x[0] == pytest.approx(-1, abs=0.01)
    # A frame moves as many points as there are, in the traces that were drawn.
    for frame in moving.frames:
        assert [len(part.x) for part in frame.data] == [
            len(moving.data[place].x) for place in frame.traces
        ]


def test_diverged_runs_make_a_page_of_valid_json(claim, records, network_record):
    arrays = {name: array.copy() for name, array in network_record().arrays.items()}
    arrays["neurons"][3:] = np.nan
    records["Network"][0] = network_record(
        status="diverged",
        arrays=arrays,
        test_accuracy=(50, 50, 50, math.nan, math.inf),
        cosine=(0.1, 0.9, 0.9, math.nan, math.nan),
    )
    with np.errstate(invalid="ignore"):
        verdict = judge(claim(), "laptop", records)
    text = own(page([(verdict, records)]))
    data = re.findall(r'<script type="application/json" id="[^"]*">(.*?)</script>', text)
    assert len(data) == 2
    for part in data:
        json.loads(part, parse_constant=pytest.fail)
    assert "1 of 9 runs diverged" in text
    assert "12 of 12 neurons are not finite" in text


def test_seeds_that_were_tuned_on_are_pointed_out(claim, records):
    def words(shift, **changes):
        moved = {
            arm: [dataclasses.replace(r, trial=r.trial | {"seed": r.seed + shift}) for r in found]
            for arm, found in records.items()
        }
        return outline([(judge(claim(**changes), "laptop", moved), moved)]).words

    assert "seeds lie below" not in words(990)
    assert "3 of 3 seeds lie below 1000; on such seeds settings were chosen" in words(-10)
    assert "3 of 3 seeds lie below 1000; on such seeds rules were looked at" in words(0)
    later = (Change("2026-11-17", "a bound was moved", "it was wrong", 1100),)
    assert "3 of 3 seeds lie below 1100; on such seeds an older rule was judged" in words(
        990, history=later
    )
    assert "2026-11-17: a bound was moved. Why: it was wrong." in words(1090, history=later)


def test_conditions_and_controls_are_shown(claim, records):
    wide = Condition("m ≥ k⁴", lambda scale: 200.0, lambda scale: 625.0)
    missed = judge(claim(conditions=(wide,)), "laptop", records, control=records)
    words = outline([(missed, records)]).words
    for part in (
        "○ outside hypotheses",
        "missed 3.125-fold",
        "every check holds",
        "These checks hold there too: Network test_accuracy ≥ 90",
    ):
        assert part in words, part


def test_records_of_another_source_are_pointed_out(claim, records):
    assert (
        "9 of 9 records were made by another version"
        in outline([(judge(claim(), "laptop", records, source="new"), records)]).words
    )


def test_no_curves_and_no_neurons_no_charts(verdict, records):
    plain = {
        arm: [dataclasses.replace(r, steps=r.steps[-1:], arrays={}) for r in found]
        for arm, found in records.items()
    }
    text = page([(verdict, plain)])
    assert 'class="chart"' not in text
    assert get_plotlyjs() not in text


def test_tables_have_headers(verdict, records):
    tags = outline([(verdict, records)]).tags
    tables = sum(tag == "table" for tag, _ in tags)
    assert (
        tables
        == sum(tag == "caption" for tag, _ in tags)
        == sum(tag == "thead" for tag, _ in tags)
        == 4
    )
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in tags if tag == "th")


def test_an_empty_page_says_how_to_fill_it(tmp_path):
    write_page([], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "unlazy reproduce" in Outline(text).words
    assert len(text) < 20_000


def test_the_page_replaces_an_older_one(verdict, records, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    write_page([(verdict, records)], path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_a_failing_write_leaves_the_old_page_and_nothing_else(verdict, records, tmp_path, claim):
    path = tmp_path / "page.html"
    path.write_text("old")
    broken = judge(
        claim(deviations=("a lone surrogate \ud800 cannot be written",)), "laptop", records
    )
    with pytest.raises(UnicodeEncodeError):
        write_page([(broken, records)], path)
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]


def test_a_missing_folder_is_named(verdict, records, tmp_path):
    with pytest.raises(BadInput, match="nowhere"):
        write_page([(verdict, records)], tmp_path / "nowhere" / "page.html")


EVIL = '</script><script>alert("1")</script>'


def contest(sizes=(100, 200), task="toy/task"):
    places = [Place(name, n, seed) for name in ("a<b", "b") for n in sizes for seed in (10, 11)]
    results = {
        p: Result(p, 50.0 + p.n / 10 + p.seed, 50.0, {"rate": 0.1}, 4, 0, 1.0, 0.1, "k")
        for p in places
    }
    return ContestOutcome(
        task,
        ("a<b", "b"),
        sizes,
        (10, 11),
        ACCURACY,
        results,
        4,
        0.2,
        500,
        "unlazy compare toy/task",
    )


def study(task="toy/task"):
    cells = tuple(Needed(d, (10.0 * d, 11.0 * d), (640,), ((0.0, 0.0),)) for d in (8, 16))
    missed = tuple(Needed(d, (None, None), (640,), ((0.3, 0.3),)) for d in (8, 16))
    rows = (
        ScalingRow("kernel", "search", cells, {8: 81.0, 16: 170.0}),
        ScalingRow("lost", "search", missed, {}),
    )
    return ScalingOutcome(task, "d", rows, 0.05, ACCURACY, (10, 11), 6, 640, 500)


def test_contests_and_scaling_studies_stand_beside_the_claims(verdict, records):
    text = own(page([(verdict, records)], [contest(), contest((100,))], [study()]))
    found = Outline(text)
    assert {"contest-1", "contest-2", "scaling-1"} <= {
        attributes.get("id") for _, attributes in found.tags
    }
    for words in (
        "Contest on toy/task",
        "unlazy compare toy/task",
        "kernel needs about d^1.00",
        "lost at d = 8, not reached: error 0.300",
    ):
        assert words in found.words, words
    charts = [
        json.loads(part)
        for part in re.findall(
            r'<script type="application/json" id="(?:contest|scaling)[^"]*">(.*?)</script>', text
        )
    ]
    assert [plotly.graph_objects.Figure(chart).data[-1].type for chart in charts] == [
        "scatter",
        "bar",
        "scatter",
    ]
    assert charts[2]["layout"]["yaxis"]["type"] == "log" and charts[2]["layout"]["xaxis"][
        "ticktext"
    ] == ["8", "16"]


def test_a_page_of_contests_alone_says_nothing_of_claims():
    found = Outline(own(page([], [contest(task=EVIL)], [study(EVIL)])))
    assert "judged by a rule" not in found.words and "nothing to show" not in found.words
    assert sum(tag == "script" for tag, _ in found.tags) == 2 + 2, "a name became a script"
