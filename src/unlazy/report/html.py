"""Views as HTML: one self-contained page that works offline, with Plotly charts."""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import unlazy
from unlazy.report.charts import chart
from unlazy.report.files import replacing
from unlazy.report.formulas import html_scripts, html_text
from unlazy.report.labels import MARKS, PASSES
from unlazy.report.policy import policy
from unlazy.report.view import View, ViewImage, ViewPlot, ViewTable, distinct, overview

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de;
  --shade: #f6f8fa; --link: #0550ae; --holds: #116329; --fails: #a40e26; --undecided: #6e4c00; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --rule: #3a424c;
  --shade: #161b22; --link: #79b8ff; --holds: #56d364; --fails: #ff8e86; --undecided: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(0.8rem, 3vw, 2.5rem) 4rem; max-width: 75rem;
  background: var(--paper); color: var(--ink);
  font: 1.05rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0.6rem 0 0.3rem; }
h2 { font-size: 1.4rem; margin: 0 0 0.5rem; }
h3 { font-size: 1.1rem; margin: 2rem 0 0.4rem; }
a { color: var(--link); }
p, ul, dl { max-width: 48rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; }
.takeaway { font-size: 1.2rem; line-height: 1.4; margin: 0.4rem 0; }
math { font-size: 1.1em; }
code { background: var(--shade); padding: 0.1em 0.3em; border-radius: 4px; }
pre { background: var(--shade); padding: 0.6em 0.8em; border-radius: 4px; width: fit-content; }
pre math { font-size: 1.1em; }
code { background: none; padding: 0; }
section + section, footer, .scroll + section { border-top: 2px solid var(--rule); margin-top: 3rem;
  padding-top: 1.5rem; }
.soft, caption, figcaption { color: var(--soft); font-size: 0.95rem; text-align: left; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.98rem; }
caption { padding-bottom: 0.3rem; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 1rem 0.4rem 0;
  border-bottom: 1px solid var(--rule); }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; }
tbody th { font-weight: 600; }
.r { text-align: right; } td.whole { white-space: nowrap; }
.badge { font-weight: 700; white-space: nowrap; border: 1.5px solid currentcolor;
  border-radius: 1em; padding: 0.05em 0.6em; }
.holds { color: var(--holds); } .fails { color: var(--fails); }
.undecided { color: var(--undecided); }
.outside, .not { color: var(--soft); }
figure { margin: 0.5rem 0 0; }
.chart { width: 100%; }
.tiles { max-width: 100%; height: auto; image-rendering: pixelated; }
details { margin-top: 1.5rem; } summary { cursor: pointer; font-weight: 600; }
@media (max-width: 46rem) {
  dl { display: block; } dd { margin-bottom: 0.4rem; }
  table { font-size: 0.88rem; } th, td { padding-right: 0.5rem; }
  .ledger thead { position: absolute; clip-path: inset(50%);
    width: 1px; height: 1px; overflow: hidden; }
  .ledger tr, .ledger td, .ledger th { display: block; border: 0; padding: 0.15rem 0; }
  .ledger td::before { content: attr(data-label) ": "; color: var(--soft); }
  .ledger tr { border-bottom: 1px solid var(--rule); padding: 0.7rem 0; }
}
@media print { .chart { break-inside: avoid; } }
"""
_SCRIPT = """
const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const css = getComputedStyle(document.documentElement);
  const color = name => css.getPropertyValue(name).trim();
  const paper = color("--paper");
  const look = { "font.color": color("--ink"), paper_bgcolor: paper, plot_bgcolor: paper };
  for (const axis of ["xaxis", "yaxis"]) {
    look[axis + ".gridcolor"] = color("--rule");
    look[axis + ".linecolor"] = color("--soft");
  }
  return look;
}
async function draw(box) {
  const spec = JSON.parse(document.getElementById(box.id + "-data").textContent);
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  await Plotly.newPlot(box, spec.data, spec.layout, options);
  await Plotly.relayout(box, theme());
  if (!spec.frames) return;
  await Plotly.addFrames(box, spec.frames);
  const reading = document.getElementById(box.id + "-reading");
  box.on("plotly_animatingframe", event => {
    reading.textContent = `${event.name}: ${spec.captions[event.name]}`;
  });
}
for (const box of document.querySelectorAll(".chart")) {
  draw(box);
  dark.addEventListener("change", () => Plotly.relayout(box, theme()));
}
"""

#: Draws a plot under the name of its element.
PlotHtml = Callable[[ViewPlot, str], str]

_HOW_TO_READ = (
    "Each claim has two results. The <strong>statement</strong> <em>holds</em> if the whole 95 % "
    "confidence interval of every check lies within its bounds, <em>fails</em> if one lies "
    "significantly outside, and is <em>undecided</em> otherwise. If an assumption of the "
    "theorem is not met by the run, nothing is confirmed or refuted. A published "
    "<strong>number</strong> is reproduced if the whole 90 % interval lies within its printed "
    "precision and stated standard deviation. "
    "A <strong>negative control</strong> violates the statement; the criteria must fail on it."
)


def badge(status: str) -> str:
    """Return a status as a mark with its word."""
    return f'<span class="badge {status.split()[0].strip(",")}">{MARKS[status]}</span>'


def cell_html(text: str) -> str:
    """Return a cell of text; a mark at its start becomes a badge."""
    for status, mark in MARKS.items():
        if text.startswith(mark):
            return badge(status) + html_text(text.removeprefix(mark))
    if text.startswith(PASSES):
        return f'<span class="badge holds">{PASSES}</span>' + html_text(text.removeprefix(PASSES))
    return html_text(text)


def table_html(table: ViewTable) -> str:
    """Return a table, which scrolls by itself if it is too wide."""
    label = table.title or table.caption
    longest = [max(map(len, column), default=0) for column in zip(*table.rows, strict=True)]
    sides = [
        f' class="{table.side(i)}{" whole" * (not longest or longest[i] <= 24)}"'
        for i in range(len(table.columns))
    ]
    head = "".join(
        f'<th scope="col" role="columnheader"{side}>{escape(name)}</th>'
        for name, side in zip(table.columns, sides, strict=True)
    )
    body = []
    for place, row in enumerate(table.rows):
        first = html_text(row[0])
        if table.links:
            first = f'<a href="#{table.links[place]}">{first}</a>'
        cells = "".join(
            f'<td role="cell" data-label="{escape(name)}"{side}>{cell_html(cell)}</td>'
            for name, cell, side in zip(table.columns[1:], row[1:], sides[1:], strict=True)
        )
        header = f'<th scope="row" role="rowheader">{first}</th>'
        body.append(f'<tr role="row">{header}{cells}</tr>')
    under = (
        f'<p class="soft">{html_text(table.caption)}</p>' if table.title and table.caption else ""
    )
    # CSS stacks the rows of an overview on narrow screens, which removes table semantics; explicit
    # roles keep them.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table '
        f'role="table" class="{"ledger" if table.links else ""}"><caption>{escape(label)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(body)}</tbody></table></div>{under}'
    )


def chart_html(plot: ViewPlot, name: str) -> str:
    """Return an element for a chart, and the data that the page's script draws in it."""
    spec = chart(plot)
    # "<" is spelled out, so that no text within can end the script element.
    data = json.dumps(spec, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    live = ""
    if plot.frames:
        first = escape(f"{plot.frames[0].title}: {plot.frames[0].caption}")
        live = f'<p aria-live="polite"><strong id="{name}-reading">{first}</strong></p>'
    caption = f"<figcaption>{html_text(plot.caption)}</figcaption>" if plot.caption else ""
    return (
        f'<figure>{live}<div class="chart" id="{name}" role="group" '
        f'aria-label="{escape(plot.title)}" style="height:{spec["layout"]["height"]}px"></div>'
        f"{caption}</figure>"
        f'<script type="application/json" id="{name}-data">{data}</script>'
    )


def image_html(image: ViewImage) -> str:
    """Return an image embedded in the HTML."""
    code = base64.b64encode(image.png).decode()
    tag = f'<img class="tiles" alt="{escape(image.description)}" src="data:image/png;base64,'
    return f'<figure>{tag}{code}"><figcaption>{escape(image.caption)}</figcaption></figure>'


def view_html(
    view: View, *, level: int = 2, name: str = "", plot_html: PlotHtml = chart_html
) -> str:
    """Return a view with headings from a level on; details are folded."""
    name = name or view.slug
    mark = f" {badge(view.status)}" if view.status else ""
    heading = html_text(view.heading or view.title)
    parts = [f'<h{level} id="{name}-title">{heading}{mark}</h{level}>'] if view.title else []
    if view.takeaway:
        parts.append(f'<p class="takeaway">{html_text(view.takeaway)}</p>')
    small = [f"<code>{escape(view.title)}</code>"] if view.heading else []
    # A part of the context that the heading has already is left out.
    small += [html_text(each) for each in view.context.split(" · ") if each not in view.heading]
    parts += [f'<p class="soft">{" · ".join(filter(None, small))}</p>'] if any(small) else []
    parts += [f"<p><strong>Note:</strong> {html_text(note)}</p>" for note in view.notes]
    labeled = "".join(f"<dt>{escape(a)}</dt><dd>{html_text(b)}</dd>" for a, b in view.lines if a)
    parts += [f"<dl>{labeled}</dl>"] if labeled else []
    parts += [f"<p>{html_text(text)}</p>" for label, text in view.lines if not label]
    if view.items:
        items = "".join(f"<li>{html_text(item)}</li>" for item in view.items)
        parts.append(f"<ul>{items}</ul>")
    parts += [table_html(table) for table in view.tables]
    if view.code:
        code = escape(view.code)
        parts.append(f'<div class="scroll"><pre><code>{code}</code></pre></div>')
    below = min(level + 1, 6)
    for plot in view.plots:
        if plot.title not in (view.title, view.heading):
            parts.append(f"<h{below}>{escape(plot.title)}</h{below}>")
        parts.append(plot_html(plot, f"{name}-{plot.slug}"))
    parts += [image_html(image) for image in view.images]
    for place, part in enumerate(view.parts):
        inner = f"{name}-{part.slug or place}"
        parts.append(view_html(part, level=below, name=inner, plot_html=plot_html))
    for place, part in enumerate(view.details):
        inner = f"{name}-{part.slug or place}"
        untitled = dataclasses.replace(part, title="", name=part.slug)
        text = view_html(untitled, level=below, name=inner, plot_html=plot_html)
        parts.append(f"<details><summary>{escape(part.title)}</summary>{text}</details>")
    return "\n".join(parts)


def page(views: Sequence[View]) -> str:
    """Return the page of views: an overview, then one section per view."""
    views, alone = distinct(views), len(views) == 1
    body = [] if alone else ["<header><h1>Results</h1></header>"]
    body += [] if alone else [table_html(each) for each in overview(views, linked=True)]
    if not views:
        body.append(
            "<p><strong>The store has no results yet.</strong> Run <code>unlazy reproduce "
            "shi2022/table1</code>, then <code>unlazy report</code>.</p>"
        )
    for view in views:
        section = f'<section id="{view.slug}" aria-labelledby="{view.slug}-title">'
        text = view_html(view, level=1 if alone else 2)
        # Statements and labels of papers are written with scripts; names of users are not.
        text = html_scripts(text) if view.kind == "Claims" else text
        body.append(f"{section}{text}</section>")
    body.append(_footer(views))
    return document(f"unlazy: {views[0].heading or views[0].title if alone else 'results'}", body)


def write_page(views: Sequence[View], path: Path) -> None:
    """Write the page of views."""
    text = page(views)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def document(title: str, body: Sequence[str]) -> str:
    """Return a whole page that needs no network, with the scripts for its charts if it has any."""
    scripts = _scripts() if any('class="chart"' in part for part in body) else ()
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        *body,
        "<noscript><p>Charts need JavaScript.</p></noscript>" if scripts else "",
        *(f"<script>{script}</script>" for script in scripts),
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


@functools.cache
def _scripts() -> tuple[str, ...]:
    """Return the scripts that draw charts."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs(), _SCRIPT


def _footer(views: Sequence[View]) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    rules = f"<p>{_HOW_TO_READ}</p>" if any(view.kind == "Claims" for view in views) else ""
    return (
        f'<footer class="soft">{rules}<p>Generated {made} by unlazy {escape(unlazy.__version__)}. '
        "This file works offline.</p></footer>"
    )
