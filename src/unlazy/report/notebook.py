"""Views in notebooks: the HTML of the page, with plots as images."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

import matplotlib

from unlazy.report.figures import draw
from unlazy.report.html import view_html
from unlazy.report.palette import PRINT_STYLE
from unlazy.report.view import ViewPlot, view_of


def notebook_html(outcome: Any) -> str:
    """Return what a notebook shows of an outcome."""
    return f"<div>{view_html(view_of(outcome), level=4, plot_html=_image)}</div>"


def _image(plot: ViewPlot, name: str) -> str:
    buffer = io.BytesIO()
    with matplotlib.rc_context(PRINT_STYLE):
        draw(plot).savefig(buffer, format="png", dpi=110)
    code = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(plot.title)}" src="data:image/png;base64,{code}">'
