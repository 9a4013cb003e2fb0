"""Views: the content shown of an outcome, as plain data.

Each kind of outcome is converted to a `View` once (`view_of`). The terminal, HTML, Markdown,
notebooks and print figures render views only.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from unlazy.core.errors import require

#: How the points of a series are drawn.
Mark = Literal["line", "points", "bars"]
#: How the interval of a series is drawn.
Interval = Literal["band", "bars"]


@dataclasses.dataclass(frozen=True)
class ViewTable:
    """A table of text: one tuple per row, as long as `columns`.

    `align` has one letter per column, l or r; columns without a letter are aligned left. `brief`
    holds the rows of the short form, the most important first; empty for all rows. `links` holds
    one anchor per row.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    caption: str = ""
    align: str = ""
    brief: tuple[int, ...] = ()
    links: tuple[str, ...] = ()

    def side(self, column: int) -> str:
        """Return the alignment of a column, l or r."""
        return self.align[column : column + 1] or "l"


@dataclasses.dataclass(frozen=True)
class ViewSeries:
    """Points of a plot; `x` are numbers, or names if the plot has categories.

    `low` and `high` are the ends of intervals. `kind` selects color and line style
    (`palette.KINDS`): measured, theory, published, fixed, learned, … Series of one `group` share a
    color and a panel. `features` (fixed, learned, tree or empty) selects a family of colors. `text`
    is written at the points, `hover` is shown on request.
    """

    name: str
    x: tuple[Any, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    mark: Mark = "line"
    kind: str = "measured"
    interval: Interval = "band"
    group: str = ""
    text: tuple[str, ...] = ()
    hover: tuple[str, ...] = ()
    size: float = 0.0
    legend: bool = True
    features: str = ""

    @property
    def family(self) -> str:
        """The group, or the name of a series without a group."""
        return self.group or self.name


@dataclasses.dataclass(frozen=True)
class ViewFrame:
    """One frame of an animated plot; `printed` frames have a panel in print figures."""

    title: str
    caption: str
    series: tuple[ViewSeries, ...]
    printed: bool = True


@dataclasses.dataclass(frozen=True)
class ViewPlot:
    """A plot as data: labels of both axes and series.

    `steps` spaces x as log(1 + x). With `categories`, these are on the vertical axis, the first at
    the top, and `y` labels the horizontal one. `facets` gives each group a panel in print. `bare`
    draws no axes. The series of `frames` are added to `series`, one frame at a time.
    """

    title: str
    x: str
    y: str
    series: tuple[ViewSeries, ...]
    log_x: bool = False
    log_y: bool = False
    steps: bool = False
    ticks: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    frames: tuple[ViewFrame, ...] = ()
    facets: bool = False
    bare: bool = False
    limits: tuple[float, float] | None = None
    caption: str = ""
    name: str = ""

    @property
    def slug(self) -> str:
        """The name in files and anchors."""
        return self.name or slug(self.title)

    @property
    def everything(self) -> tuple[ViewSeries, ...]:
        """All series, those of frames included."""
        return (*self.series, *(each for frame in self.frames for each in frame.series))


@dataclasses.dataclass(frozen=True)
class ViewImage:
    """A PNG image with its description."""

    png: bytes
    description: str
    caption: str


@dataclasses.dataclass(frozen=True)
class View:
    """Content shown of an outcome, the takeaway first.

    `heading` is the title on pages, if `title` is an id. `status` is a key of `labels.MARKS` or
    empty; `context` is one line on size and origin. `lines`
    are labels with a sentence each. `facts` are the cells of a row in an overview, under the
    heading `kind`. `parts` are sections; `details` are sections shown on request, in the terminal
    as `more` says. `max_lines` bounds the short form in the terminal (0: no bound).
    """

    title: str
    takeaway: str = ""
    status: str = ""
    context: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    tables: tuple[ViewTable, ...] = ()
    plots: tuple[ViewPlot, ...] = ()
    images: tuple[ViewImage, ...] = ()
    notes: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    code: str = ""
    parts: tuple[View, ...] = ()
    details: tuple[View, ...] = ()
    more: str = ""
    kind: str = ""
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""
    max_lines: int = 0
    heading: str = ""

    @property
    def slug(self) -> str:
        """The name in files and anchors."""
        return self.name or slug(self.title)

    @property
    def all_plots(self) -> tuple[ViewPlot, ...]:
        """The plots, then those of parts and details."""
        inner = (plot for part in (*self.parts, *self.details) for plot in part.all_plots)
        return (*self.plots, *inner)


#: The module whose function `view` converts outcomes of a class. Modules are imported on demand:
#: audits need scikit-learn, verdicts do not.
HOMES = {
    "Verdict": "verdicts",
    "BenchmarkResult": "benchmarks",
    "ScalingOutcome": "scaling",
    "AuditOutcome": "audits",
    "RankingOutcome": "rankings",
    "ReadingsOutcome": "readings",
    "Diagnosis": "circuits",
}


def view_of(outcome: Any, **more: Any) -> View:
    """Return the view of an outcome; `more` are further arguments, such as records."""
    name = type(outcome).__name__
    require(name in HOMES, f"There is no view of {name}.")
    found: View = importlib.import_module(f"unlazy.report.{HOMES[name]}").view(outcome, **more)
    origin = getattr(outcome, "provenance", {})
    if not origin.get("older"):
        return found
    note = (
        f"{origin['older']} of {origin['records']} records were made by other code, libraries or "
        "data (--reuse-older)."
    )
    return dataclasses.replace(found, notes=(*found.notes, note))


def provenance(command: str, seeds: Sequence[int]) -> View:
    """Return the command and seeds that reproduce an outcome."""
    lines = (("command", command or "given in Python"), ("seeds", ", ".join(map(str, seeds))))
    return View("Provenance", lines=lines)


def overview(views: Sequence[View], *, linked: bool = False) -> tuple[ViewTable, ...]:
    """Return one table per kind of outcome, with one row per view made of its facts."""
    tables = []
    for kind in dict.fromkeys(view.kind for view in views):
        mine = [view for view in views if view.kind == kind]
        tables.append(
            ViewTable(
                tuple(mine[0].facts),
                tuple(tuple(view.facts.values()) for view in mine),
                kind,
                links=tuple(view.slug for view in mine) if linked else (),
            )
        )
    return tuple(tables)


def distinct(views: Iterable[View]) -> list[View]:
    """Return the views, with a number added to names that occur again."""
    seen: dict[str, int] = {}
    found = []
    for view in views:
        seen[view.slug] = count = seen.get(view.slug, 0) + 1
        name = f"{view.slug}--{count}" if count > 1 else view.slug
        found.append(dataclasses.replace(view, name=name))
    return found


def slug(text: str) -> str:
    """Return a name of letters, digits and hyphens, for files and anchors."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def finite(values: Iterable[Any]) -> list[float]:
    """Return the values that are finite, as floats."""
    return [float(v) for v in values if not isinstance(v, str) and math.isfinite(v)]
