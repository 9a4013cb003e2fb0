"""Figures, pages and notebook display of outcomes; the only module of `lab` that uses `report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame


class Shown:
    """Outcome with a figure, a page and a notebook display, all made from its view."""

    def figure(self) -> Any:
        """Return the first plot as a Matplotlib figure."""
        from unlazy.core.errors import require
        from unlazy.report.figures import draw
        from unlazy.report.view import view_of

        plots = view_of(self).plots
        require(bool(plots), "This outcome has no plot.")
        return draw(plots[0])

    def page(self, path: Path | str) -> None:
        """Write a self-contained HTML page."""
        from unlazy.report.html import write_page
        from unlazy.report.view import view_of

        write_page([view_of(self)], Path(path))

    def to_dataframe(self) -> DataFrame:
        """Return the numbers of all plots as a data frame, one row per point."""
        import pandas as pd

        from unlazy.report.figures import numbers_of
        from unlazy.report.view import view_of

        plots = view_of(self).all_plots
        rows = [{"plot": plot.title} | row for plot in plots for row in numbers_of(plot)]
        return pd.DataFrame([{k: None if v == "" else v for k, v in row.items()} for row in rows])

    def __str__(self) -> str:
        """Return what the command line prints, for 100 columns."""
        from unlazy.report.terminal import text_of
        from unlazy.report.view import view_of

        return text_of(view_of(self))

    def _repr_html_(self) -> str:
        from unlazy.report.notebook import notebook_html

        return notebook_html(self)
