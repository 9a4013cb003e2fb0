"""Figures for print."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from unlazy.core.errors import BadInput
from unlazy.lab.judging import judge
from unlazy.report.charts import curve_chart
from unlazy.report.figures import (
    accuracy_curves,
    curves,
    neuron_map,
    save_figures,
    slug,
    step_ticks,
)
from unlazy.report.palette import ARM_COLOURS


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(Text))


def test_curves_are_of_arms_with_more_than_three_steps(verdict, records):
    lines = curves(verdict, records)
    assert [line.arm for line in lines] == ["Network", "Kernel"]
    assert [line.published for line in lines] == [100.0, 90.0]
    network = lines[0]
    assert network.estimates[-1].mean == pytest.approx(99.7)
    low, high = network.band
    assert all(a <= e.mean <= b for a, e, b in zip(low, network.estimates, high, strict=True))
    assert max(high) <= 100


def test_an_arm_keeps_its_colour_whatever_the_order_of_the_records(verdict, records):
    turned = dict(reversed(records.items()))
    assert {line.arm: line.colour for line in curves(verdict, records)} == {
        line.arm: line.colour for line in curves(verdict, turned)
    }
    assert len(set(ARM_COLOURS)) == len(ARM_COLOURS)


def test_one_seed_has_a_curve_but_no_band(claim, records):
    single = {arm: found[:1] for arm, found in records.items()}
    verdict = judge(claim(), "laptop", single)
    assert all(line.band is None for line in curves(verdict, single))
    assert "95 %" not in texts(accuracy_curves(verdict, single))


def test_values_that_are_not_finite_leave_a_gap(verdict, records, network_record):
    records["Network"][0] = network_record(
        status="diverged", test_accuracy=(50, 50, 50, math.inf, math.nan)
    )
    line = curves(verdict, records)[0]
    assert math.isnan(line.estimates[-1].mean)
    accuracy_curves(verdict, records).canvas.draw()


def test_accuracy_curves_name_every_arm_once(verdict, records):
    found = texts(accuracy_curves(verdict, records))
    for name in (
        "Network",
        "Kernel",
        "toy2020/table9",
        "laptop scale, 3 seeds",
        "published final value",
        "chance",
    ):
        assert found.count(name) == 1, name
    assert "Readout" not in found


def test_without_curves_there_is_a_sentence(verdict, records):
    with pytest.raises(BadInput, match="no curve"):
        accuracy_curves(verdict, {"Readout": records["Readout"]})


def test_step_ticks_keep_the_last_and_leave_room():
    ticks = step_ticks((0, 1, 2, 12, 30, 60, 120, 210, 300, 450, 600), digit=0.036)
    assert {0, 1, 2, 600} <= set(ticks)
    assert not {300, 450} & set(ticks)
    assert step_ticks((0,), digit=0.03) == [0]


def test_neuron_map_has_a_panel_a_step(network_record):
    record = network_record()
    figure = neuron_map(record)
    assert [axes.get_title() for axes in figure.axes] == [
        "initialisation\nmax cosine 0.200",
        "step 1\nmax cosine 0.990",
        "step 2\nmax cosine 0.990",
        "step 100\nmax cosine 0.998",
    ]
    assert "neuron nearest +u after two steps (6)" in " ".join(
        t.get_text() for t in figure.legends[0].get_texts()
    )
    assert len(neuron_map(record, steps=(2,)).axes) == 1


def test_neuron_map_of_what_is_not_recorded(network_record, records):
    with pytest.raises(BadInput, match="7"):
        neuron_map(network_record(), steps=(7,))
    with pytest.raises(BadInput, match="no neurons"):
        neuron_map(records["Kernel"][0])


def test_neuron_map_of_a_diverged_run(network_record):
    arrays = {name: array.copy() for name, array in network_record().arrays.items()}
    arrays["neurons"][4] = np.nan
    figure = neuron_map(
        network_record(status="diverged", arrays=arrays, cosine=(0.2, 0.9, 0.9, 0.9, math.nan))
    )
    figure.canvas.draw()
    assert "12 neurons not finite" in figure.axes[-1].get_title()


def test_files(verdict, records, tmp_path):
    paths = save_figures(verdict, records, tmp_path / "new")
    stems = ("toy2020-table9-laptop-accuracy", "toy2020-table9-laptop-neurons-network")
    assert [path.name for path in paths] == [
        f"{stem}.{kind}" for stem in stems for kind in ("csv", "png", "pdf")
    ]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(
        path.name for path in paths
    )
    for path in paths:
        if path.suffix == ".png":
            image = imread(path)
            assert min(image.shape[:2]) > 400
            assert image[..., :3].std() > 0
        elif path.suffix == ".csv":
            assert (
                path.read_text().startswith("panel,series,")
                and len(path.read_text().splitlines()) > 10
            )
        else:
            assert path.read_bytes().startswith(b"%PDF-")
            assert b"%%EOF" in path.read_bytes()[-64:]


def test_equal_records_give_equal_files(verdict, records, tmp_path):
    first = [path.read_bytes() for path in save_figures(verdict, records, tmp_path / "a")]
    assert first == [path.read_bytes() for path in save_figures(verdict, records, tmp_path / "b")]


def test_a_study_without_curves_and_neurons_has_no_files(verdict, records, tmp_path):
    assert save_figures(verdict, {"Readout": records["Readout"]}, tmp_path) == []


def test_slug():
    assert slug("Network w/o structure") == "network-w-o-structure"


def test_curves_follow_the_metric_of_the_records(claim, records):
    """Squared errors have a curve too, and no line of chance; several classes are not guessed by a
    coin.
    """
    real = {
        arm: [
            dataclasses.replace(r, measurements={"test_squared_error": (1.0, 0.8, 0.5, 0.2, 0.1)})
            for r in found
        ]
        for arm, found in records.items()
        if arm != "Readout"
    }
    plain = claim(checks=(), published=())
    drawn = accuracy_curves(judge(plain, "laptop", real), real)
    assert "test squared error" in texts(drawn) and "chance" not in texts(drawn)
    assert (
        curve_chart(curves(judge(plain, "laptop", real), real))["layout"]["yaxis"]["title"]["text"]
        == "test squared error"
    )
    many = {
        arm: [
            dataclasses.replace(r, trial=r.trial | {"family": {"type": "Digits", "classes": 10}})
            for r in found
        ]
        for arm, found in records.items()
    }
    assert "chance" not in texts(accuracy_curves(judge(claim(), "laptop", many), many))
