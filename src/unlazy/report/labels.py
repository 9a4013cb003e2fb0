"""Words and numbers: marks of outcomes, labels of quantities, digits of values."""

from __future__ import annotations

import fnmatch
import functools
import math
from collections.abc import Sequence

from unlazy.lab import registry
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import PAPERS, definition_of, rows_of
from unlazy.lab.rules import Check, Quantity
from unlazy.lab.statistics import Estimate, range_of

MARKS = {
    # Before the mark that they begin with.
    "holds, loosely": "✓ holds, loosely",
    "holds after correction": "✓ holds after correction",
    "holds under reading": "✓ holds under a reading",
    "holds": "✓ holds",
    "fails": "✗ fails",
    "undecided": "? undecided",
    "assumptions not met": "○ assumptions not met",
    "not testable at finite size": "○ not testable at finite size",
    "definition checked": "✓ definition checked",
    "ours": "◇ ours",
    "not run": "· not run",
}
#: Mark of a check that passes.
PASSES = "✓ passes"
#: Rich's colors.
COLORS = {
    "holds": "green",
    "holds, loosely": "green",
    "holds after correction": "green",
    "holds under reading": "green",
    "fails": "red",
    "undecided": "yellow",
    "assumptions not met": "blue",
    "not testable at finite size": "blue",
    "definition checked": "green",
    "ours": "cyan",
    "not run": "bright_black",
}
#: The source of a check's bounds.
ORIGINS = {"paper": "paper", "ours": "ours", "identity": "identity, not counted"}
_MEASURES = {
    "test_accuracy": "test accuracy (%)",
    "train_accuracy": "training accuracy (%)",
    "test_loss": "test loss",
    "test_squared_error": "squared test error",
}


#: Notation of intervals, after the word mean.
CI = "± half of the 95 % CI, or [95 % CI] clipped to possible values"
#: Fixed formats of measures, as the papers print them.
_DIGITS = {"cosine": ".3f"}


@functools.cache
def _labels(paper: str) -> tuple[dict[str, str], ...]:
    path = PAPERS / paper / "labels.csv"
    return tuple(rows_of(path, "measure", "claim", "label")) if path.exists() else ()


def label_of(claim: Claim, measure: str) -> str:
    """Return a quantity of a claim in a few words, from `papers/NAME/labels.csv`.

    Its full definition is in `quantities.csv`. A quantity without a label is shown by its name.
    """
    paper, _, name = claim.id.partition("/")
    rows = [row for row in _labels(paper) if row["measure"] == measure]
    own = [row["label"] for row in rows if row["claim"] and fnmatch.fnmatch(name, row["claim"])]
    shared = [row["label"] for row in rows if not row["claim"]]
    return [*own, *shared, _MEASURES.get(measure, measure.replace("_", " "))][0]


def definitions_of(claim: Claim) -> list[tuple[str, str]]:
    """Return label and definition of every quantity of a claim.

    A definition has words, the paper's notation, and a unit. A quantity that is only plotted has
    the name of its line as label.
    """
    compared = {name for quantity in claim.quantities for name in quantity.measures}
    plotted = {line.measure: line.name for plot in claim.plots for line in plot.series}
    plotted |= {line.x: plot.x for plot in claim.plots for line in plot.series if line.x}
    found = []
    for name in claim.measures:
        label = label_of(claim, name)
        label = label if name in compared else plotted.get(name, label)
        if definition := definition_of(claim.id, name):
            plain = definition.unit in ("", "1") or label.endswith(f"({definition.unit})")
            unit = "" if plain else f" (unit: {definition.unit})"
            notation = f" ${definition.notation}$" if definition.notation else ""
            found.append((label, f"{definition.definition}{notation}{unit}"))
    return found


def short_label(claim: Claim, measure: str) -> str:
    """Return the label of a measure at the head of a narrow column."""
    return label_of(claim, measure).partition(" to ")[0]


def quantity_label(claim: Claim, quantity: Quantity) -> str:
    """Return the label of a quantity, with its step, and its arm if a claim has several."""
    own = _measure(claim, quantity)
    other = quantity.minus
    if other is None:
        alone = len({arm for each in claim.quantities for arm in each.arms}) == 1
        return own if alone else f"{quantity.arm}: {own}"
    unit = " (points)" if own.endswith(" (%)") else ""
    own = own.removesuffix(" (%)")
    minus = _measure(claim, other).removesuffix(" (%)")
    if other.minus is None and other.arm == quantity.arm:
        return f"{quantity.arm}: {own} − {minus}{unit}"
    if other.minus is None and minus == own:
        return f"{quantity.arm} − {other.arm}: {own}{unit}"
    return f"{quantity.arm}: {own} − {quantity_label(claim, other)}"


def _measure(claim: Claim, quantity: Quantity) -> str:
    measure = label_of(claim, quantity.measure)
    return measure if quantity.step is None else f"{measure} at step {quantity.step}"


def bounds_of(check: Check) -> str:
    """Return the accepted values of a check; a tolerance stays visible: ≥ 1 − 1e-12, 1 ± 1e-9."""
    low, high = check.lower, check.upper
    often = "" if check.share is None else f" in > {100 * check.share:g} % of seeds"
    if math.isinf(high):
        return f"{'> 0' if 0 < low < 1e-100 else f'≥ {_bound(low)}'}{often}"
    if math.isinf(low):
        return f"≤ {_bound(high)}{often}"
    middle, half = (low + high) / 2, (high - low) / 2
    if low == high:
        return f"= {_bound(low)}{often}"
    if 0 < half < 1e-6 * max(abs(middle), 1.0):
        return f"{middle:g} ± {_power(half)}{often}"
    return f"{_bound(low)} to {_bound(high)}{often}"


def _bound(value: float) -> str:
    near = float(f"{value:g}")
    if not 1e-15 < abs(value - near) / max(abs(value), 1e-300) < 1e-8:  # rounding, or digits
        return f"{value:g}"
    return f"{near:g} {'+' if value > near else '−'} {_power(abs(value - near))}"


def _power(value: float) -> str:
    """Return one digit and a power of ten."""
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit}e{int(power)}"


def percent(fraction: float) -> str:
    """Return a fraction in whole percent, such as "98 %"."""
    return f"{100 * fraction:.0f} %"


def number(value: float, measure: str = "") -> str:
    """Return a number with the digits that its measure deserves."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    digits = _DIGITS.get(measure, ".2f" if "accuracy" in measure else ".4g")
    text = f"{value:{digits}}"
    return text.removeprefix("-") if not float(text) else text


def signed(value: float) -> str:
    """Return a difference with its sign and one decimal."""
    return f"{value:+.1f}".replace("-", "−")


def spread(estimate: Estimate, measure: str = "") -> str:
    """Return mean ± half the interval; the mean alone for a single seed.

    An interval that was clipped to the range of its measure is not symmetric, so its ends are
    given: 99.84 [98.78, 100]. Otherwise both numbers have two digits of the half width, unless the
    measure has fixed digits.
    """
    mean, half = estimate.mean, estimate.half
    alone = estimate.seeds < 2 and half > 0  # then the ends are those of the measure
    fixed = measure in _DIGITS or "accuracy" in measure
    if alone or not math.isfinite(half) or not (half or fixed):
        return number(mean, measure)
    if _clipped(estimate, measure):
        low, high = (_end(value, measure) for value in (estimate.low, estimate.high))
        return f"{number(mean, measure)} [{low}, {high}]"
    if fixed or not 1e-5 < half < 1e4:
        return f"{number(mean, measure)} ± {number(half, measure)}"
    decimals = max(1 - math.floor(math.log10(half)), 0)
    return f"{mean:.{decimals}f} ± {half:.{decimals}f}"


def _clipped(estimate: Estimate, measure: str) -> bool:
    """Return whether an end is that of the range, and nearer to the mean than the other end.

    Stored numbers are rounded, so equal distances may differ a little.
    """
    low, high = range_of(measure)
    below, above = estimate.mean - estimate.low, estimate.high - estimate.mean
    at_range = estimate.low == low or estimate.high == high
    return at_range and not math.isclose(below, above, rel_tol=0.01)


def _end(value: float, measure: str) -> str:
    return f"{value:g}" if value.is_integer() else number(value, measure)


def task_name(task: str) -> str:
    """Return a task in words, with its changed parameters; unchanged if it is not registered."""
    name, sign, changes = task.partition(" with ")
    entry = registry.tasks().get(name)
    changed = f" (changed: {changes})" if sign else ""
    return f"{entry.summary}{changed}" if entry else task


def interval(estimate: Estimate) -> str:
    """Return the mean with its interval in brackets, without an interval of no width."""
    if not math.isfinite(estimate.half) or not estimate.half or estimate.seeds < 2:
        return number(estimate.mean)
    return f"{number(estimate.mean)} [{number(estimate.low)}, {number(estimate.high)}]"


def count(many: int, noun: str) -> str:
    """Return a number with its noun, such as 1 seed or 3 seeds."""
    return f"{many:,} {noun}{'s' * (many != 1)}"


def listed(values: Sequence[float]) -> str:
    """Return numbers with commas between."""
    return ", ".join(f"{value:g}" for value in values)
