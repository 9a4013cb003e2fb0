"""Each renderer, over views of every kind of outcome."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import shutil
from html.parser import HTMLParser

import plotly.graph_objects
import pytest
from matplotlib.image import imread
from matplotlib.text import Text
from plotly.offline import get_plotlyjs
from rich.console import Console

import unlazy
from unlazy.core.errors import BadInput
from unlazy.report.charts import chart, step_ticks
from unlazy.report.figures import STYLES, draw, save_plots
from unlazy.report.html import page, view_html, write_page
from unlazy.report.labels import MARKS
from unlazy.report.markdown import table_markdown, view_markdown
from unlazy.report.notebook import notebook_html
from unlazy.report.terminal import print_view
from unlazy.report.view import (
    View,
    ViewPlot,
    ViewSeries,
    ViewTable,
    distinct,
    overview,
    slug,
    view_of,
)

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Outline(HTMLParser):
    """Tags, attributes and text of a page; checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text.replace(get_plotlyjs(), ""))
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


def plain(text):
    return " ".join(text.split())


def all_tables(view):
    yield from view.tables
    for part in (*view.parts, *view.details):
        yield from all_tables(part)


def printed(view, width=200, **options):
    out = Console(width=width, file=io.StringIO(), record=True)
    print_view(view, out, **options)
    return out.export_text()


def test_the_terminal_prints_the_takeaway_first_and_details_on_request(shown):
    brief, full = plain(printed(shown)), plain(printed(shown, details=True))
    first = brief.index(plain(shown.takeaway))
    for later in (*(text for _, text in shown.lines), *(table.title for table in shown.tables)):
        assert first < brief.index(plain(later))
    if shown.status:
        assert MARKS[shown.status][2:].upper() in brief
    for table in all_tables(shown):
        for row in table.rows:
            assert all(plain(cell).replace(" ± ", "±")[:10] in full for cell in row), row
    for part in shown.details:
        assert part.title in full and (not part.items or part.items[0] not in brief)
    assert len(brief) <= len(full) and printed(shown, width=50)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_columns_that_do_not_fit_continue_below_and_no_word_is_broken(width):
    cells = ("ntk", "80.27 ± 1.45", "82.85 ± 2.65", "84.52 ± 0.31", "w_variance 2, b_variance 0")
    columns = ("learner", "n = 1,000", "n = 3,000", "n = 10,000", "chosen")
    table = ViewTable(columns, (cells, cells), align="lrrrl")
    text = printed(View("wide", tables=(table,)), width=width)
    words = {word for cell in (*columns, *cells) for word in cell.replace(" ± ", "±").split()}
    assert words <= set(text.split())
    assert max(map(len, text.splitlines())) <= width
    blocks = sum(line.startswith("learner") for line in text.splitlines())
    assert blocks == {40: 3, 60: 2, 80: 1}[width]


def test_the_formula_of_a_definition_has_a_line_of_its_own():
    text = printed(View("a", items=(r"mean: Mean of $x$ over all seeds. $\frac{1}{2}$ (unit: %)",)))
    assert [line.strip() for line in text.splitlines()[2:]] == [
        "· mean: Mean of x over all seeds.",
        "1/2 (unit: %)",
    ]


def test_html_is_well_formed_escaped_and_readable_offline(shown):
    text = page([shown, shown])
    found = Outline(text)
    own = text.replace(get_plotlyjs(), "")
    assert "<script>alert" not in own and "default-src 'none'" in own
    assert not re.search(r"https?:|@import|url\(", own)
    for part in (shown.title, shown.takeaway, unlazy.__version__):
        assert plain(part) in found.words
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for tag, a in found.tags if tag == "a"} <= set(ids)
    count = sum(tag == "table" for tag, _ in found.tags)
    assert count == sum(tag == "caption" for tag, _ in found.tags)
    assert count == 2 * sum(1 for _ in all_tables(shown)) + 1
    assert all(a.get("scope") in ("col", "row") for tag, a in found.tags if tag == "th")
    assert text.count(get_plotlyjs()) == bool(shown.all_plots)
    data = re.findall(r'<script type="application/json" id="[^"]*">(.*?)</script>', own)
    assert len(data) == 2 * len(shown.all_plots)
    for part in data:
        json.loads(part, parse_constant=pytest.fail)


def test_a_page_runs_its_own_scripts_only(tmp_path):
    """In Chromium: charts are drawn, and a script that was smuggled into the body does not run."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = os.environ.get("UNLAZY_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed; set $UNLAZY_CHROMIUM")
    smuggled = "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
    shown = View("shown", plots=(PLOT,))
    path = tmp_path / "page.html"
    path.write_text(page([shown]).replace("<body>", f"<body>{smuggled}", 1), encoding="utf-8")
    with playwright.sync_playwright() as session:
        browser = session.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(path.as_uri())
        tab.wait_for_selector(".chart svg.main-svg")
        assert tab.title() == "unlazy: shown"
        browser.close()


def test_charts_are_what_plotly_understands(shown):
    for plot in shown.all_plots:
        spec = chart(plot)
        spec.pop("captions", None)
        figure = plotly.graph_objects.Figure(json.loads(json.dumps(spec, allow_nan=False)))
        names = [trace.name for trace in figure.data if trace.showlegend]
        assert len(names) == len(set(names))
        shown_names = {each.name for each in plot.everything if each.legend}
        assert len(shown_names) <= len(names) <= len(shown_names) + 1
        for frame in figure.frames:
            assert [len(part.x) for part in frame.data] == [
                len(figure.data[place].x) for place in frame.traces
            ]


def test_markdown_has_every_table_with_as_many_cells_in_each_row(shown):
    text = view_markdown(shown)
    assert text.startswith(f"## {shown.title}") and shown.takeaway in text
    for table in all_tables(shown):
        assert table_markdown(table) in text
    table = ViewTable(("a|b", "c"), (("x|y", "z\nw"),), "T", "C", "lr")
    assert table_markdown(table) == ("T:\n\n| a\\|b | c |\n| --- | ---: |\n| x\\|y | z w |\n\nC")


def test_notebooks_show_plots_as_images(verdict, shown):
    text = notebook_html(verdict)
    assert "holds" in Outline(text).words and verdict._repr_html_() == text
    drawn = view_html(shown, plot_html=lambda plot, name: f"<i>{name}</i>")
    assert drawn.count("<i>") == len(shown.all_plots) and "<script" not in drawn


def test_figures_have_files_and_their_numbers(shown, tmp_path):
    if not shown.all_plots:
        assert save_plots(shown, tmp_path) == []
        return
    one = View(shown.title, plots=shown.all_plots[:1], name="one")
    paths = save_plots(one, tmp_path / "new", "column")
    assert [path.suffix for path in paths] == [".csv", ".png", ".pdf"]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == sorted(p.name for p in paths)
    rows = list(csv.DictReader(io.StringIO(paths[0].read_text(encoding="utf-8"))))
    (plot,) = one.plots
    first = plot.everything[0]
    assert rows[0]["series"] == first.name and float(rows[0]["y"]) == first.y[0]
    assert len(rows) >= sum(len(each.y) for each in plot.series)
    assert imread(paths[1])[..., :3].std() > 0
    assert paths[2].read_bytes().startswith(b"%PDF-")
    assert paths[2].read_bytes() == save_plots(one, tmp_path / "again", "column")[2].read_bytes()


def test_every_plot_is_drawn_with_all_names_in_its_legend(shown):
    for plot in shown.all_plots:
        figure = draw(plot)
        legend = [text.get_text() for each in figure.legends for text in each.get_texts()]
        titles = "\n".join(axes.get_title(loc="left") for axes in figure.axes)
        named = [each for each in plot.everything if each.legend]
        for each in named if len({s.name for s in named}) > 1 else ():
            assert each.name in legend or each.family in titles, each.name


PLOT = ViewPlot(
    "Error by n",
    "n",
    "error",
    (
        ViewSeries("measured", (1.0, 10.0), (4.0, float("nan")), (3.0, 1.0), (5.0, 2.0)),
        ViewSeries("theory", (1.0, 10.0), (9.0, 7.0), kind="theory"),
        ViewSeries("bars", (1.0, 10.0), (2.0, 3.0), (1.0, 2.0), (3.0, 5.0), interval="bars"),
    ),
    log_x=True,
    log_y=True,
)


def test_both_renderers_draw_the_same_series():
    (axes,) = draw(PLOT).axes
    assert axes.get_xscale() == axes.get_yscale() == "log" and axes.get_xlabel() == "n"
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["theory"].get_linestyle() == "--" and lines["theory"].get_marker() == ""
    traces = {trace["name"]: trace for trace in chart(PLOT)["data"]}
    assert traces["theory"]["line"]["dash"] == "dash" and traces["theory"]["mode"] == "lines"
    assert traces["measured"]["y"] == [4.0, None], "NaN leaves a gap"
    assert traces["bars"]["error_y"]["array"] == [1.0, 2.0]
    assert traces["intervals"]["fill"] == "toself"
    for name in ("measured", "theory", "bars"):
        assert traces[name]["line"]["color"] == lines[name].get_color()
    assert chart(PLOT)["layout"]["yaxis"]["ticktext"][:3] == ["1", "2", "5"]


@pytest.mark.parametrize("style", STYLES)
def test_styles_change_sizes_and_nothing_else(style):
    plain_figure, figure = draw(PLOT), draw(PLOT, style)
    width = STYLES[style].width or plain_figure.get_size_inches()[0]
    assert figure.get_size_inches()[0] == pytest.approx(width)
    before, after = (
        sorted(text.get_fontsize() for text in each.findobj(Text))
        for each in (plain_figure, figure)
    )
    assert after[-1] / before[-1] == pytest.approx(STYLES[style].letters)


def test_an_unknown_style_and_an_unknown_outcome_are_refused():
    with pytest.raises(BadInput, match="Did you mean 'column'"):
        draw(PLOT, "colunm")
    with pytest.raises(BadInput, match="no view of int"):
        view_of(3)


def test_step_ticks_keep_the_last_and_leave_room():
    ticks = step_ticks((0, 1, 2, 12, 30, 60, 120, 210, 300, 450, 600), digit=0.036)
    assert {0, 1, 2, 600} <= set(ticks) and not {300, 450} & set(ticks)
    assert step_ticks((0,), digit=0.03) == [0]


def test_an_overview_has_one_table_per_kind_and_one_row_per_view():
    views = [
        View("a", kind="Claims", facts={"claim": "a", "statement": MARKS["holds"]}),
        View("b", kind="Comparisons", facts={"task": "b"}),
        View("a", kind="Claims", facts={"claim": "a", "statement": MARKS["fails"]}),
    ]
    claims, benchmarks = overview(distinct(views), linked=True)
    assert (claims.title, claims.links) == ("Claims", ("a", "a--2")) and len(benchmarks.rows) == 1
    assert slug("Network w/o structure") == "network-w-o-structure"


def test_an_empty_page_tells_how_to_fill_it_and_a_failing_write_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    write_page([], path)
    text = path.read_text(encoding="utf-8")
    assert "unlazy reproduce" in Outline(text).words and len(text) < 20_000
    with pytest.raises(UnicodeEncodeError):
        write_page([View("a lone surrogate \ud800 cannot be written")], path)
    assert path.read_text(encoding="utf-8") == text
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(BadInput, match="nowhere"):
        write_page([], tmp_path / "nowhere" / "page.html")


def test_bars_at_one_x_do_not_overlap_and_all_of_them_are_drawn():
    x, low = (100.0, 1000.0), (1.0, 2.0)
    series = tuple(
        ViewSeries(name, x, (3.0, 4.0), low, (9.0, 8.0), interval="bars") for name in "abc"
    )
    figure = draw(ViewPlot("bars", "n", "error", series, log_x=True))
    figure.canvas.draw()
    (axes,) = figure.axes
    lines = [line for line in axes.lines if line.get_label() in ("a", "b", "c")]
    assert [tuple(line.get_xdata()) for line in lines] == [x] * 3, "the data are not changed"
    at = [line.get_transform().transform((100.0, 3.0))[0] for line in lines]
    assert all(b - a > 2 for a, b in itertools.pairwise(at))
    bottom, top = axes.get_ylim()
    left, right = axes.get_xlim()
    assert 0 < bottom <= 1 and 9 <= top < 12 and left <= 100 and 1000 <= right
