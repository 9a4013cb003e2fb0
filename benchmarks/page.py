"""A self-contained HTML page of the ratios: `results/benchmarks/index.html`."""

from __future__ import annotations

from html import escape
from typing import Any

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 "
    "1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem "
    ".6rem;border-bottom:1px solid #8886}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}.no{font-weight:bold}"
)


def page(report: dict[str, Any]) -> str:
    """Return the page with the table and the machine."""
    machine = {
        **report["machine"],
        **{name: value for name, value in report["versions"].items() if value},
    }
    facts = "".join(
        f"<li>{escape(str(name))}: {escape(str(value))}</li>" for name, value in machine.items()
    )
    rows = "".join(map(_row, report["comparisons"]))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width">'
        f"<title>unlazy: speed</title><style>{STYLE}</style><h1>Speed, as ratios</h1><p>Higher "
        "is better if the target is ≥, lower "
        "if it is ≤. Each ratio is the median over rounds; in a round both ran one after "
        "the other.</p><table><thead><tr>"
        "<th>what</th><th>ratio</th><th>minimum</th><th>maximum</th><th>target</th><th>met</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><h2>Machine</h2><ul>{facts}</ul>"
        f"<p>Made by <code>{escape(report['command'])}</code>.</p></html>\n"
    )


def _row(one: dict[str, Any]) -> str:
    notes = ", ".join(f"{name} {value}" for name, value in one["notes"].items())
    told = escape(one["what"]) + (f"<br><small>{escape(notes)}</small>" if notes else "")
    sign = "≥" if one["better"] == "higher" else "≤"
    numbers = "".join(
        f'<td class="n">{one[name]:.2f}</td>' for name in ("ratio", "ratio_least", "ratio_greatest")
    )
    met = "<td>yes</td>" if one["met"] else '<td class="no">no</td>'
    return f'<tr><td>{told}</td>{numbers}<td class="n">{sign} {one["target"]:g}</td>{met}</tr>'
