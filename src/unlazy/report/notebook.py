"""What notebooks show of an outcome: its sentences, its table, and its figure as a picture inside
the HTML.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape

import matplotlib
from matplotlib.figure import Figure

from unlazy.lab.exponents import ScalingOutcome
from unlazy.lab.judging import Verdict
from unlazy.lab.outcomes import ContestOutcome
from unlazy.report.contests import caption as contest_caption
from unlazy.report.contests import learning_curves, standings
from unlazy.report.html import badge, table_html
from unlazy.report.palette import PRINT_STYLE
from unlazy.report.scaling import caption as scaling_caption
from unlazy.report.scaling import figure, table
from unlazy.report.tables import checks, comparison, conditions, notes


def contest_html(outcome: ContestOutcome) -> str:
    """A contest."""
    sentences = [outcome.conclusion(n) for n in outcome.sizes]
    return _whole(
        outcome.task,
        sentences,
        table_html(contest_caption(outcome), standings(outcome)),
        _picture(learning_curves(outcome), outcome.task),
    )


def scaling_html(outcome: ScalingOutcome) -> str:
    """A scaling study."""
    return _whole(
        outcome.task,
        outcome.sentences,
        table_html(scaling_caption(outcome), table(outcome)),
        _picture(figure(outcome), outcome.task),
    )


def verdict_html(verdict: Verdict) -> str:
    """A verdict: the rule check by check, and published beside measured values.

    A notebook has no record to draw from.
    """
    claim = verdict.claim
    parts = [table_html("Published and measured", comparison(verdict))] if claim.published else []
    parts += [table_html("The rule, check by check", checks(verdict))] if verdict.judgements else []
    parts += (
        [table_html("The conditions of the theorem", conditions(verdict))]
        if verdict.conditions
        else []
    )
    said = [claim.statement, *([verdict.reason] if verdict.reason else []), *notes(verdict)]
    numbers = f" Numbers: {verdict.numbers}." if verdict.numbers.of else ""
    return f"<p>{badge(verdict.outcome)}{numbers}</p>" + _whole(
        f"{claim.id}, {claim.where}", said, *parts
    )


def _whole(title: str, sentences: Iterable[str], *parts: str) -> str:
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f"<div><h4>{escape(title)}</h4>{said}{''.join(parts)}</div>"


def _picture(drawn: Figure, label: str) -> str:
    buffer = io.BytesIO()
    with matplotlib.rc_context(PRINT_STYLE):
        drawn.savefig(buffer, format="png", dpi=110)
    return (
        f'<img alt="{escape(label)}" '
        f'src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
    )
