"""Figures as files: their styles, and the numbers beside them."""

import csv

import numpy as np
import pytest
from matplotlib.figure import Figure

from unlazy.core.errors import BadInput
from unlazy.report.prints import STYLES, save_all, save_figure, save_numbers, styled


def drawn():
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([1, 2, 3], [4.0, 5.5, 7.0], label="network")
    left.errorbar([1, 2], [3.0, 3.5], yerr=[0.1, 0.2], label="kernel")
    left.set(xlabel="n", ylabel="accuracy")
    left.set_title("curves", loc="left")
    right.barh(["a", "b"], [10.0, 20.0])
    right.scatter([0.5], [0.25], label="cloud")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def test_the_numbers_are_those_that_are_drawn(tmp_path):
    with save_numbers(drawn(), tmp_path / "f.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = {
        name: [(float(r["x"]), float(r["y"])) for r in rows if r["series"] == name]
        for name in {r["series"] for r in rows}
    }
    assert found["network"] == [(1, 4.0), (2, 5.5), (3, 7.0)]
    assert found["cloud"] == [(0.5, 0.25)]
    assert found["a"] == [(10.0, 0)] and found["b"] == [(20.0, 1)]
    assert (1.0, 3.0) in [point for points in found.values() for point in points], (
        "the means of error bars are lacking"
    )
    assert {row["panel"] for row in rows} == {"curves", "panel 2"} and rows[0]["x_label"] == "n"


@pytest.mark.parametrize("style", STYLES)
def test_styles_change_sizes_and_nothing_else(style, tmp_path):
    plain, figure = drawn(), styled(drawn(), style)
    width = STYLES[style].width or 6.4
    assert figure.get_size_inches()[0] == pytest.approx(width)
    np.testing.assert_array_equal(
        figure.axes[0].lines[0].get_ydata(), plain.axes[0].lines[0].get_ydata()
    )
    size = figure.axes[0].title.get_fontsize() / plain.axes[0].title.get_fontsize()
    assert size == pytest.approx(STYLES[style].letters)
    save_figure(drawn(), tmp_path / "f.png", style)
    assert (tmp_path / "f.png").stat().st_size > 1000


def test_an_unknown_style_is_refused():
    with pytest.raises(BadInput, match="Did you mean 'column'"):
        styled(drawn(), "colunm")


def test_each_figure_has_two_formats_and_its_numbers(tmp_path):
    paths = save_all({"one": drawn()}, tmp_path / "new", "column")
    assert sorted(path.suffix for path in paths) == [".csv", ".pdf", ".png"] and all(
        path.exists() for path in paths
    )
