"""Words and numbers: marks of outcomes, labels of quantities, digits of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unlazy.lab.claims import Claim
from unlazy.lab.rules import Check, Quantity
from unlazy.lab.statistics import Estimate

MARKS = {
    "holds after correction": "✓ holds after correction",  # before the mark that it begins with
    "holds": "✓ holds",
    "fails": "✗ fails",
    "undecided": "? undecided",
    "assumptions not met": "○ assumptions not met",
    "not run": "· not run",
}
#: Rich's colors.
COLORS = {
    "holds": "green",
    "holds after correction": "green",
    "fails": "red",
    "undecided": "yellow",
    "assumptions not met": "blue",
    "not run": "bright_black",
}
#: The source of a check's bounds.
ORIGINS = {"paper": "paper", "ours": "ours", "identity": "identity, does not count"}
_MEASURES = {
    "test_accuracy": "test accuracy (%)",
    "train_accuracy": "train accuracy (%)",
    "cosine": "max cosine",
}


def label_of(claim: Claim, measure: str) -> str:
    """Return the label of a measure of a claim: definitions of quantities are inserted here."""
    return _MEASURES.get(measure, measure.replace("_", " "))


def short_label(claim: Claim, measure: str) -> str:
    """Return the label of a measure at the head of a narrow column."""
    return label_of(claim, measure).replace(" accuracy (%)", " %")


def quantity_label(claim: Claim, quantity: Quantity) -> str:
    """Return the label of a quantity, with its arm and step."""
    own = _measure(claim, quantity)
    other = quantity.minus
    if other is None:
        return f"{quantity.arm}: {own}"
    if other.minus is None and other.arm == quantity.arm:
        return f"{quantity.arm}: {own} − {_measure(claim, other)}"
    if other.minus is None and _measure(claim, other) == own:
        return f"{quantity.arm} − {other.arm}: {own}"
    return f"{quantity.arm}: {own} − {quantity_label(claim, other)}"


def _measure(claim: Claim, quantity: Quantity) -> str:
    measure = label_of(claim, quantity.measure).removesuffix(" (%)")
    return measure if quantity.step is None else f"{measure} at step {quantity.step}"


def bounds_of(check: Check) -> str:
    """Return the accepted values of a check; a tolerance stays visible: ≥ 1 − 1e-12, 1 ± 1e-9."""
    low, high = check.lower, check.upper
    share = "" if check.share is None else f" in > {check.share:.0%} of seeds"
    if math.isinf(high):
        return f"{'> 0' if 0 < low < 1e-100 else f'≥ {_bound(low)}'}{share}"
    if math.isinf(low):
        return f"≤ {_bound(high)}{share}"
    middle, half = (low + high) / 2, (high - low) / 2
    if 0 < half < 1e-6 * abs(middle):
        return f"{middle:g} ± {_power(half)}{share}"
    return f"{_bound(low)} to {_bound(high)}{share}"


def _bound(value: float) -> str:
    near = float(f"{value:g}")
    if not 1e-15 < abs(value - near) / max(abs(value), 1e-300) < 1e-8:  # rounding, or digits
        return f"{value:g}"
    return f"{near:g} {'+' if value > near else '−'} {_power(abs(value - near))}"


def _power(value: float) -> str:
    """Return one digit and a power of ten."""
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit}e{int(power)}"


def number(value: float, measure: str = "") -> str:
    """Return a number with the digits that its measure deserves."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    digits = ".3f" if measure == "cosine" else ".2f" if "accuracy" in measure else ".4g"
    text = f"{value:{digits}}"
    return text.removeprefix("-") if not float(text) else text


def spread(estimate: Estimate, measure: str = "") -> str:
    """Return mean ± half the interval; the mean alone for a single seed."""
    alone = estimate.seeds < 2 and estimate.half > 0  # then the ends are those of the measure
    if alone or not math.isfinite(estimate.half):
        return number(estimate.mean, measure)
    return f"{number(estimate.mean, measure)} ± {number(estimate.half, measure)}"


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
