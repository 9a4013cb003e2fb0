"""Audits as views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unlazy.estimators.catalog import GROUPS
from unlazy.report.html import write_page
from unlazy.report.labels import count, signed
from unlazy.report.progress import duration
from unlazy.report.view import View, ViewPlot, ViewSeries, ViewTable, slug
from unlazy.studies.audit import AuditOutcome, MethodLosses
from unlazy.tables.decision import MARGIN
from unlazy.tables.explain import Explanation

#: Row of the methods that were selected for a group.
SELECTED = "selected per fold"
#: Explanation of the groups of methods.
_WORDS = (
    "Fixed features are chosen before the data are seen: the columns themselves, kernels (RBF, "
    "Laplace, NTK and NNGP of infinitely wide networks), random features. Learned features are "
    "directions in the columns that networks and recursive feature machines (RFM) find in the "
    "data. Trees are shown for comparison and do not enter the result."
)


def view(outcome: AuditOutcome) -> View:
    """Return the view of an audit: the result, the methods, and diagnostics."""
    decided, gap = outcome.decision, outcome.decision.gap
    result, gain = _result(outcome), _gain(outcome)
    late = any(part.endswith("(time limit)") for part in outcome.left_out)
    resume = "Run the same command again to continue, or allow more time with --time."
    learned = decided.decision == "learn features"
    steps = [("Next", resume)] if late else []
    steps.append(("Caution" if learned else "" if late else "Next", decided.changes))
    data = [("Data", " ".join(outcome.decisions))] if outcome.decisions else []
    skipped = [("Skipped", _skipped(outcome.left_out))] if outcome.left_out else []
    with_code = decided.code and decided.decision != "nothing to learn"
    return View(
        title=outcome.table,
        takeaway=result,
        context=f"{outcome.rows:,} rows, {outcome.columns} input columns · {outcome.kind} · "
        f"{count(outcome.folds, 'fold')} · {duration(outcome.seconds)} used",
        lines=(("Gain", gain), *data, *skipped, *steps),
        tables=(methods(outcome),),
        plots=(_methods_plot(outcome),),
        parts=(
            *(_part(finding) for finding in outcome.findings),
            *([View(f"Code: fit {_model(outcome)}", code=decided.code)] if with_code else []),
        ),
        details=(View("How to read this", lines=(("Features", _WORDS), ("Protocol", _PROTOCOL))),),
        kind="Audits",
        facts={
            "table": outcome.table,
            "size": f"{outcome.rows:,} × {outcome.columns}",
            "result": result,
            "gain": f"{signed(gap.mean)} ({signed(gap.low)} to {signed(gap.high)})",
        },
        name=f"{slug(outcome.table)}-audit",
    )


_PROTOCOL = (
    "Nested cross-validation: everything is tuned and fitted within the training rows of a fold. "
    "In each fold, the method of a group with the smallest cross-validated loss on these rows "
    "represents the group; so the loss of a group may differ from those of its methods."
)


def _skipped(left_out: Sequence[str]) -> str:
    """Return the parts that were skipped, by reason: the texts have the form `part (reason)`."""
    reasons: dict[str, list[str]] = {}
    for text in left_out:
        part, _, reason = text.removesuffix(")").rpartition(" (")
        name = part or text
        title = _PARTS[name][0] if name in _PARTS else name
        reasons.setdefault(reason if part else "", []).append(title)
    return "; ".join(
        ", ".join(parts) + (f" ({reason})" if reason else "") for reason, parts in reasons.items()
    )


def _constant(outcome: AuditOutcome) -> float:
    return float(np.mean(outcome.constant))


def _result(outcome: AuditOutcome) -> str:
    """Return the result in one sentence."""
    fixed, learned = outcome.selected["fixed"], outcome.selected["learned"]
    loss = _loss_name(outcome).removesuffix(" (%)")
    margin = f"a gain ≥ {MARGIN:g} point"
    better = "learned features are significantly better, but " * (outcome.decision.gap.low > 0)
    missing = [text for text in outcome.left_out if " folds (" in text]
    of = missing[0].partition(" of ")[2].partition(" ")[0] if missing else ""
    preliminary = f"Preliminary ({outcome.folds} of {of} folds): " if of else ""
    return (
        preliminary
        + {
            "learn features": f"Feature learning helps: {learned:.1f} % {loss} versus {fixed:.1f} "
            "% "
            "with fixed features.",
            "a kernel is enough": f"A fixed kernel suffices: {margin} is ruled out.",
            "not decided": f"Inconclusive: {better}{margin} is neither shown nor excluded.",
            "nothing to learn": "No signal: neither fixed nor learned features beat the constant "
            f"({_constant(outcome):.1f} % {loss}).",
        }[outcome.decision.decision]
    )


def _gain(outcome: AuditOutcome) -> str:
    """Return the difference between both groups with its interval, and the trees."""
    decided, gap = outcome.decision, outcome.decision.gap
    loss = _loss_name(outcome).removesuffix(" (%)")
    text = (
        f"Learned features {outcome.selected['learned']:.1f} %, fixed features "
        f"{outcome.selected['fixed']:.1f} % {loss}: gain {signed(gap.mean)} points, 95 % CI "
        f"{signed(gap.low)} to {signed(gap.high)}. In each fold, the method of a group is selected "
        f"on the training rows: most often {decided.learned} and {decided.fixed}. The smallest "
        f"number "
        "of the table is too optimistic, since it is chosen after the test rows were seen."
    )
    if decided.plain is not None:
        better = ", better than both: prefer them to predict" * decided.trees_better
        trees = outcome.selected["tree"]
        text += (
            f" Tree ensembles, for comparison: {trees:.1f} % (most often {decided.plain}){better}."
        )
    return text


def _model(outcome: AuditOutcome) -> str:
    """Return which method the code fits."""
    decided = outcome.decision
    if decided.trees_better:
        return f"{decided.plain} (the tree ensemble selected most often)"
    if decided.decision == "learn features":
        return f"{decided.learned} (the learned-feature method selected most often)"
    return f"{decided.fixed} (the fixed-feature method selected most often)"


def _loss_name(outcome: AuditOutcome) -> str:
    return "error (%)" if outcome.kind == "classification" else "unexplained variance (%)"


def _ordered(outcome: AuditOutcome) -> list[MethodLosses]:
    """Return the methods, the best first."""
    return sorted(outcome.methods, key=lambda method: method.mean)


def methods(outcome: AuditOutcome) -> ViewTable:
    """Return the methods, the best first; in short, the best of each group and the constant."""
    constant = _constant(outcome)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for each in _ordered(outcome):
        deviation = f"{each.deviation:.2f}" if outcome.folds > 1 else "–"
        numbers = (f"{each.mean:.2f}", deviation, f"{each.seconds:.0f}")
        rows.append((each.mean, (each.name, str(each.group), *numbers)))
    rows.append((constant, ("constant", "–", f"{constant:.2f}", "–", "–")))
    for group, loss in outcome.selected.items():
        if group != "tree":
            rows.append((loss, (SELECTED, str(group), f"{loss:.2f}", "–", "–")))
    ordered = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    features = [row[1] for row in ordered]
    best = [i for i, each in enumerate(features) if each not in features[:i]]
    chosen = [i for i, row in enumerate(ordered) if row[0] == SELECTED]
    brief = list(dict.fromkeys([*chosen, *best]))
    return ViewTable(
        ("method", "features", _loss_name(outcome), "SD over folds", "seconds"),
        tuple(ordered),
        f"Held-out rows, mean over {count(outcome.folds, 'fold')}",
        align="llrrr",
        brief=tuple(brief),
    )


def _methods_plot(outcome: AuditOutcome) -> ViewPlot:
    ordered, series = _ordered(outcome), []
    for group, words in GROUPS.items():
        mine = [method for method in ordered if method.group == group]
        if mine:
            series.append(
                ViewSeries(
                    words,
                    tuple(method.name for method in mine),
                    tuple(method.mean for method in mine),
                    tuple(method.mean - method.deviation for method in mine),
                    tuple(method.mean + method.deviation for method in mine),
                    mark="points",
                    kind=group,
                )
            )
    return ViewPlot(
        "Figure of the table",
        "method",
        _loss_name(outcome),
        tuple(series),
        categories=tuple(method.name for method in ordered),
        caption="Lower is better."
        + " Lines: ± 1 standard deviation over folds." * (outcome.folds > 1),
        name="methods",
    )


def _part(finding: Explanation) -> View:
    _, title, plots = _PARTS[finding.name]
    drawn = tuple(plots(finding.data)) if plots else ()
    return View(title, lines=(("", finding.says),), plots=drawn, name=finding.name)


def _line(name: str, x: Sequence[Any], y: Sequence[Any], kind: str = "measured") -> ViewSeries:
    kept = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if b is not None]
    return ViewSeries(name, tuple(a for a, _ in kept), tuple(b for _, b in kept), kind=kind)


def _curves(data: Mapping[str, Any]) -> Iterator[ViewPlot]:
    curves = data["curves"].items()
    lines = [_line(f"{GROUPS[g]}: {c['name']}", c["rows"], c["losses"], g) for g, c in curves]
    rows = tuple(sorted({float(many) for _, curve in curves for many in curve["rows"]}))
    caption = "Held-out loss of the method selected most often, by number of training rows."
    axes = ("Learning curves", "training rows", data["unit"])
    yield ViewPlot(*axes, tuple(lines), log_x=True, ticks=rows, caption=caption)


def _scales(data: Mapping[str, Any]) -> Iterator[ViewPlot]:
    ends = [data["scales"][0], data["scales"][-1]]
    lines = (
        _line("two-layer network", data["scales"], data["losses"], "learned"),
        _line("tangent kernel before training", ends, [data["tangent before"]] * 2, "theory"),
        _line("tangent kernel after training", ends, [data["tangent after"]] * 2, "theory"),
    )
    title, x = "Output scales", "output scale α of the network (large α: lazy training)"
    caption = (
        "At a large scale, the weights stay near their initialization. Dashed: ridge regression "
        "on the "
        "tangent kernel of the network."
    )
    yield ViewPlot(title, x, data["unit"], lines, log_x=True, caption=caption)


def _alignment(data: Mapping[str, Any]) -> Iterator[ViewPlot]:
    lines = tuple(_line(name, data["ranks"], found) for name, found in data["shares"].items())
    title, x = "Leading eigenvectors", "number of leading eigenvectors"
    caption = "A kernel needs few examples if few leading eigenvectors capture the target."
    yield ViewPlot(title, x, "fraction of the target", lines, log_x=True, caption=caption)


def _gradients(data: Mapping[str, Any]) -> Iterator[ViewPlot]:
    y, names = "fraction of the gradients", tuple(data["columns"])
    at = tuple(float(index + 1) for index in range(len(data["spectrum"])))
    mean, low, high = (tuple(data[name]) for name in ("spectrum", "low", "high"))
    spectrum = ViewSeries(
        "mean and 90 % interval over resamplings", at, mean, low, high, kind="learned"
    )
    yield ViewPlot("Directions", "index of the direction", y, (spectrum,), ticks=at)
    mean, low, high = (tuple(data[name]) for name in ("shares", "shares low", "shares high"))
    bars = ViewSeries(y, names, mean, low, high, mark="bars", kind="learned", legend=False)
    caption = "From a recursive feature machine on resampled rows."
    yield ViewPlot("Columns", "column", y, (bars,), categories=names, caption=caption)


#: Name, title and plots of each explanation.
_PARTS: dict[str, tuple[str, str, Callable[[Mapping[str, Any]], Iterator[ViewPlot]] | None]] = {
    "learning curves": (
        "fewer training rows",
        "Does the gain grow with the number of rows?",
        _curves,
    ),
    "gradients": (
        "relevant directions and columns",
        "Which directions and columns matter?",
        _gradients,
    ),
    "from lazy to rich": (
        "feature learning versus lazy training",
        "Does a network gain when its weights move?",
        _scales,
    ),
    "kernel alignment": (
        "alignment of kernels with the target",
        "Are the kernels aligned with the target?",
        _alignment,
    ),
    "rotation": ("rotated columns", "Do the individual columns matter?", None),
    "permuted labels": ("shuffled labels", "How large is a gain due to chance?", None),
}


def write_audit(outcome: AuditOutcome, path: Path) -> None:
    """Write the page of an audit."""
    write_page([view(outcome)], path)
