"""The page: one HTML file with every verdict, its curves and its moving neurons, that needs no
network to be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import unlazy
from unlazy.lab.exponents import ScalingOutcome
from unlazy.lab.judging import Verdict
from unlazy.lab.outcomes import ContestOutcome
from unlazy.lab.trials import Record
from unlazy.report.charts import curve_chart, neuron_chart
from unlazy.report.contests import caption as contest_caption
from unlazy.report.contests import contest_chart, standings
from unlazy.report.figures import arm_order, curves, slug
from unlazy.report.files import replacing
from unlazy.report.html import badge, cell_html, chart_html, list_html, table_html
from unlazy.report.neurons import has_neurons
from unlazy.report.parities import has_parity, scores_chart, weights_chart
from unlazy.report.plots import lines, plot_chart
from unlazy.report.scaling import caption as scaling_caption
from unlazy.report.scaling import scaling_chart, table
from unlazy.report.tables import checks, comparison, conditions, control_mark, notes, number
from unlazy.report.tiles import has_tiles, tiles_html

Entry = tuple[Verdict, Mapping[str, Sequence[Record]]]

#: The browser itself is told to fetch nothing.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:; font-src data:"
)
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de; --shade: #f6f8fa; --link: #0550ae;
  --holds: #116329; --fails: #a40e26; --undecided: #6e4c00; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --rule: #3a424c; --shade: #161b22;
  --link: #79b8ff; --holds: #56d364; --fails: #ff8e86; --undecided: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(0.8rem, 3vw, 2.5rem) 4rem; max-width: 75rem; background: var(--paper); color: var(--ink);
  font: 1.05rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0.6rem 0 0.3rem; }
h2 { font-size: 1.4rem; margin: 0 0 0.5rem; }
h3 { font-size: 1.1rem; margin: 2rem 0 0.4rem; }
a { color: var(--link); }
p, ul { max-width: 48rem; }
code { background: var(--shade); padding: 0.1em 0.3em; border-radius: 4px; }
pre { background: var(--shade); padding: 0.6em 0.8em; border-radius: 4px; width: fit-content; } pre code { background: none; padding: 0; }
section { border-top: 2px solid var(--rule); margin-top: 3rem; padding-top: 1.5rem; }
.soft, caption, figcaption { color: var(--soft); font-size: 0.95rem; text-align: left; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.98rem; }
caption { padding-bottom: 0.3rem; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 1rem 0.4rem 0; border-bottom: 1px solid var(--rule); }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; }
tbody th { font-weight: 600; }
.numbers td { white-space: nowrap; }
.badge { font-weight: 700; white-space: nowrap; border: 1.5px solid currentcolor; border-radius: 1em; padding: 0.05em 0.6em; }
.holds { color: var(--holds); } .fails { color: var(--fails); } .undecided { color: var(--undecided); }
.outside, .not { color: var(--soft); }
figure { margin: 0.5rem 0 0; }
.chart { width: 100%; }
.tiles { max-width: 100%; height: auto; image-rendering: pixelated; }
details { margin-top: 1.5rem; } summary { cursor: pointer; font-weight: 600; }
@media (max-width: 46rem) {
  table { font-size: 0.88rem; } th, td { padding-right: 0.5rem; }
  .ledger thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .ledger tr, .ledger td, .ledger th { display: block; border: 0; padding: 0.15rem 0; }
  .ledger tr { border-bottom: 1px solid var(--rule); padding: 0.7rem 0; }
}
@media print { .chart { break-inside: avoid; } }
"""
_SCRIPT = """
const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const css = getComputedStyle(document.documentElement), colour = name => css.getPropertyValue(name).trim();
  const look = { "font.color": colour("--ink"), paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper") };
  for (const axis of ["xaxis", "yaxis"]) {
    look[axis + ".gridcolor"] = colour("--rule");
    look[axis + ".linecolor"] = colour("--soft");
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
  box.on("plotly_animatingframe", event => { reading.textContent = spec.captions[event.name]; });
}
for (const box of document.querySelectorAll(".chart")) {
  draw(box);
  dark.addEventListener("change", () => Plotly.relayout(box, theme()));
}
"""


def write_page(
    entries: Sequence[Entry],
    path: Path | str,
    *,
    contests: Sequence[ContestOutcome] = (),
    scalings: Sequence[ScalingOutcome] = (),
) -> None:
    """Write the page: verdicts with the records of their arms, read with their arrays; contests;
    scaling studies.
    """
    text = page(entries, contests, scalings)
    with replacing(Path(path)) as draft:
        draft.write_text(text, encoding="utf-8")


def page(
    entries: Sequence[Entry],
    contests: Sequence[ContestOutcome] = (),
    scalings: Sequence[ScalingOutcome] = (),
) -> str:
    """The page as text."""
    names = _anchors(entries)
    sections = [
        _section(name, verdict, records)
        for name, (verdict, records) in zip(names, entries, strict=True)
    ]
    others = [(f"contest-{index + 1}", contest) for index, contest in enumerate(contests)]
    studies = [(f"scaling-{index + 1}", study) for index, study in enumerate(scalings)]
    sections += [_contest(name, contest) for name, contest in others] + [
        _scaling(name, study) for name, study in studies
    ]
    body = [
        _header(bool(entries), bool(sections)),
        _ledger(names, [verdict for verdict, _ in entries]) if entries else "",
        _overview(
            "Contests",
            [(name, each.task, each.conclusion(each.sizes[-1])) for name, each in others],
        ),
        _overview(
            "Scaling studies",
            [(name, each.task, " ".join(each.sentences)) for name, each in studies],
        ),
        *sections,
    ]
    return document("unlazy: claims and what became of them", body)


def document(title: str, body: Sequence[str]) -> str:
    """A whole page that needs no network, with the script for its charts where it has any."""
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        *body,
        _scripts() if any('class="chart"' in part for part in body) else "",
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _overview(title: str, rows: Sequence[tuple[str, str, str]]) -> str:
    """Contests or scaling studies in a sentence each."""
    items = "".join(
        f'<li><a href="#{name}">{escape(task)}</a>: {escape(sentence)}</li>'
        for name, task, sentence in rows
    )
    return f"<h2>{title}</h2><ul>{items}</ul>" if items else ""


def _anchors(entries: Sequence[Entry]) -> list[str]:
    """A name for each section.

    Runs of one claim at one scale on other seeds are told apart by a number.
    """
    names: list[str] = []
    for verdict, _ in entries:
        name = f"{slug(verdict.claim.id)}-{verdict.scale}"
        again = sum(other == name or other.startswith(f"{name}--") for other in names)
        names.append(f"{name}--{again + 1}" if again else name)
    return names


def _scripts() -> str:
    from plotly.offline import get_plotlyjs

    return (
        "<noscript><p>The charts need JavaScript; everything else on this page does "
        "not.</p></noscript>"
        f"\n<script>{get_plotlyjs()}</script>\n<script>{_SCRIPT}</script>"
    )


def _header(claims: bool, anything: bool) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    rules = (
        "<p>Each verdict has two parts. The <strong>statement</strong> is judged by a rule of "
        "several checks: it <em>holds</em> where the "
        "whole 95 % interval of the mean over seeds lies within the bounds of every check, "
        "<em>fails</em> where one lies outside beyond "
        "chance, and is <em>undecided</em> between; where a condition of its theorem is not met "
        "by the run, it is <em>outside "
        "hypotheses</em>, and nothing is confirmed or refuted. The <strong>numbers</strong> are "
        "the published values: one is reproduced "
        "where the whole 90 % interval lies within its printed precision and stated spread. A "
        "<strong>control</strong> is a world in which "
        "the statement is false: there the same rule must not hold. A store "
        " keeps the time at which it first saw a rule: a note says so where a rule is younger "
        "than the records it judges.</p>"
    )
    text = (
        "<header><h1>Where gradient descent learns features: "
        f"{'claims of papers, run again' if claims or not anything else 'what was run'}"
        f"</h1>{rules if claims or not anything else ''}"
        f'<p class="soft">Made {made} by unlazy {escape(unlazy.__version__)}. This file needs '
        "no network.</p></header>"
    )
    if anything:
        return text
    return text + (
        "<p><strong>There is nothing to show yet: the store holds no run.</strong> Fill it with "
        "<code>unlazy reproduce shi2022/table1</code>, then write this page again with "
        "<code>unlazy report</code>.</p>"
    )


def _ledger(names: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    # On a narrow screen rows are stacked by the style, which takes the roles of a table from its
    # parts: so they are given again.
    head = "".join(
        f'<th scope="col" role="columnheader">{name}</th>'
        for name in (
            "Claim",
            "Statement",
            "Numbers",
            "Control",
            "What the paper asserts",
            "In the paper",
            "Reason",
        )
    )
    rows = "".join(
        '<tr role="row"><th scope="row" role="rowheader"><a '
        f'href="#{name}">{escape(v.claim.id)}</a> '
        f'<span class="soft">{v.scale}</span></th>'
        f'<td role="cell">{badge(v.outcome)}</td><td role="cell">{v.numbers}</td>'
        f'<td role="cell">{cell_html(control_mark(v))}</td><td '
        f'role="cell">{escape(v.claim.statement)}</td>'
        f'<td role="cell">{escape(v.claim.where)}</td><td '
        f'role="cell">{escape(v.reason) or "every check holds"}</td></tr>'
        for name, v in zip(names, verdicts, strict=True)
    )
    return (
        '<div class="scroll"><table class="ledger" role="table"><caption>All '
        'claims</caption><thead role="rowgroup"><tr role="row">'
        f'{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _section(name: str, verdict: Verdict, records: Mapping[str, Sequence[Record]]) -> str:
    claim = verdict.claim
    seeds = f"{len(verdict.seeds)} seed{'s' * (len(verdict.seeds) != 1)}"
    parts = [
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 '
        f'id="{name}-title">{escape(claim.id)} {badge(verdict.outcome)}</h2>',
        f'<p>{escape(claim.statement)}</p><p class="soft">{escape(claim.where)}. '
        f"{verdict.scale.capitalize()} scale, {seeds}.</p>",
        *(f"<p><strong>Note:</strong> {note}</p>" for note in map(escape, notes(verdict))),
        *_hypotheses(verdict),
        *_published(verdict),
        "<h3>The rule, check by check</h3>",
        _checks(verdict),
        *_worlds(verdict),
    ]
    if claim.published:
        title = f"Published numbers: {verdict.numbers}"
        parts.append(
            list_html(
                title,
                verdict.numbers.lines,
                "Every published number was met within its printed precision.",
            )
        )
    if claim.history:
        told = [f"{change.date}: {change.what}. Why: {change.why}." for change in claim.history]
        parts.append(
            list_html(f"Changed after a run; judged on seeds from {claim.first_seed}", told, "")
        )
    for plot in claim.plots:
        found = lines(plot, records)
        if found:
            chart = chart_html(
                f"{name}-{slug(plot.title)}", plot_chart(plot, found), plot.title, plot.caption
            )
            parts += [f"<h3>{escape(plot.title)}</h3>", chart]
    trained = curves(verdict, records)
    if trained:
        caption = (
            "Hover over a point for its interval; click on a name to hide or show it. Steps are "
            "spaced as log(1 + step)."
        )
        parts += [
            f"<h3>{trained[0].metric.label.removesuffix(' (%)').capitalize()} during training</h3>",
            chart_html(
                f"{name}-curves",
                curve_chart(trained),
                f"{trained[0].metric.label} by step",
                caption,
            ),
        ]
    for arm in arm_order(verdict, records):
        if records[arm] and has_neurons(records[arm][0]):
            parts.append(_neurons(f"{name}-neurons-{slug(arm)}", arm, records[arm][0]))
        if records[arm] and has_tiles(records[arm][0]):
            parts.append(tiles_html(arm, records[arm][0]))
        if records[arm] and has_parity(records[arm][0]):
            parts.append(_parity(f"{name}-parity-{slug(arm)}", arm, records[arm][0]))
    parts += [
        list_html("Deviations from the paper", claim.deviations, "None."),
        _provenance(verdict),
        "</section>",
    ]
    return "\n".join(parts)


def _hypotheses(verdict: Verdict) -> list[str]:
    """The conditions of the theorem, where the claim is on one."""
    if not verdict.conditions:
        return []
    return [
        "<h3>The conditions of the theorem</h3>",
        table_html("At the sizes of this run", conditions(verdict)),
    ]


def _worlds(verdict: Verdict) -> list[str]:
    """The control, and what cannot tell the worlds apart."""
    control = verdict.control
    if control is None:
        return []
    same = (
        f" These checks hold there too: {escape('; '.join(control.held))}." if control.held else ""
    )
    return [
        f"<p><strong>Control:</strong> {escape(control.what)}: "
        f"{cell_html(control_mark(verdict))}.{same}</p>"
    ]


def _published(verdict: Verdict) -> list[str]:
    """Published beside measured values, where the paper prints any."""
    if not verdict.claim.published:
        return []
    return [
        "<h3>Published and measured</h3>",
        table_html("Mean over seeds ± half of the 95 % interval", comparison(verdict), "numbers"),
    ]


def _checks(verdict: Verdict) -> str:
    if not verdict.judgements:
        return f"<p>{escape(verdict.reason)}.</p>"
    header, rows = checks(verdict)
    # The interval itself, beside mean ± half: it is what the bounds are held against.
    at = header.index("measured") + 1
    for row, judgement in zip(rows, verdict.judgements, strict=True):
        e, measure = judgement.measured, judgement.check.quantity.measure
        row.insert(
            at,
            f"[{number(e.low, measure)}, {number(e.high, measure)}]"
            if math.isfinite(e.half)
            else "–",
        )
    return table_html(
        "Mean over seeds ± half of its interval, and the whole interval",
        ([*header[:at], "95 % interval", *header[at:]], rows),
    )


def _provenance(verdict: Verdict) -> str:
    facts = {
        "command": [verdict.command],
        "seeds": [", ".join(map(str, verdict.seeds))],
        "trials": [f"{verdict.trials}, of which {verdict.diverged} diverged"],
        "seconds of running": [f"{verdict.seconds:.1f}"],
        "made by another source": [f"{verdict.older} of {verdict.trials} records"],
        **verdict.provenance,
    }
    rows = [[name, "; ".join(values)] for name, values in facts.items()]
    return f"<details><summary>Provenance</summary>{table_html('Where the records come from', (['what', 'value'], rows))}</details>"


def _neurons(name: str, arm: str, record: Record) -> str:
    spec = neuron_chart(record)
    caption = (
        "Cosine similarities in the plane, by classical multidimensional scaling of each step. "
        "A neuron on the circle lies wholly in the "
        "plane; the farther inside, the less of it is seen. Where two neurons coincide, the "
        "smaller mark lies on the larger."
    )
    title = f"<h3>Neurons of {escape(arm)}, seed {record.seed}</h3>"
    return title + chart_html(
        name,
        spec,
        f"Neurons of {arm} by step, with a slider",
        caption,
        spec["captions"][str(record.steps[0])],
    )


def _parity(name: str, arm: str, record: Record) -> str:
    """The weights of the neurons on and off the parity, and the score by number of ones, along
    training.
    """
    above = (
        "Each mark is a neuron. After one step those on the bits of the parity stand out. Click "
        "on a step to hide or show it."
    )
    below = (
        "A network that knows the parity zigzags between its signs. Bands hold the middle eight "
        "tenths of inputs with so many ones."
    )
    return "\n".join(
        [
            f"<h3>Weights of {escape(arm)} on the bits of the parity and off them, seed "
            f"{record.seed}</h3>",
            chart_html(
                f"{name}-weights",
                weights_chart(record),
                f"Weights of {arm} on and off the parity, by step",
                above,
            ),
            f"<h3>Score of {escape(arm)} by number of ones, seed {record.seed}</h3>",
            chart_html(
                f"{name}-scores",
                scores_chart(record),
                f"Score of {arm} by number of ones, by step",
                below,
            ),
        ]
    )


def _contest(name: str, outcome: ContestOutcome) -> str:
    diverged = sum(result.diverged for result in outcome.results.values())
    note = (
        f"<p><strong>Note:</strong> {diverged} runs left the finite numbers; they count with "
        "what they measured.</p>"
        if diverged
        else ""
    )
    caption = "Hover over a point for its interval; click on a name to hide or show it."
    return "\n".join(
        [
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">Contest '
            f"on {escape(outcome.task)}</h2>",
            *(f"<p>{escape(outcome.conclusion(n))}</p>" for n in outcome.sizes),
            note,
            table_html(contest_caption(outcome), standings(outcome), "numbers"),
            chart_html(
                f"{name}-curves", contest_chart(outcome), f"Learners on {outcome.task}", caption
            ),
            f'<p class="soft">Each learner tried at most {outcome.budget} settings, scored on '
            f"{outcome.share:.0%} of its examples, held "
            f"out; the best met {outcome.test:,} test examples.</p>",
            _made_by(outcome.command, outcome.seeds),
            "</section>",
        ]
    )


def _scaling(name: str, outcome: ScalingOutcome) -> str:
    drawn = any(len(row.places) or row.predicted for row in outcome.rows)
    caption = (
        "Bands reach from the least to the greatest of the seeds. Where a learner did not reach "
        "the target, it has no point."
    )
    chart = (
        chart_html(
            f"{name}-sizes", scaling_chart(outcome), f"Examples needed on {outcome.task}", caption
        )
        if drawn
        else ""
    )
    title = f"Examples needed on {escape(outcome.task)} as {escape(outcome.field)} grows"
    return "\n".join(
        [
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 '
            f'id="{name}-title">{title}</h2>',
            *(f"<p>{escape(sentence)}</p>" for sentence in outcome.sentences),
            table_html(scaling_caption(outcome), table(outcome), "numbers"),
            chart,
            f'<p class="soft">In a search, learners tried at most {outcome.budget} settings at '
            "each number of examples; a pass over fresh "
            "examples was not tuned.</p>",
            _made_by(outcome.command, outcome.seeds),
            "</section>",
        ]
    )


def _made_by(command: str, seeds: Sequence[int]) -> str:
    rows = [["command", command or "given in Python"], ["seeds", ", ".join(map(str, seeds))]]
    return f"<details><summary>Provenance</summary>{table_html('What makes it again', (['what', 'value'], rows))}</details>"
