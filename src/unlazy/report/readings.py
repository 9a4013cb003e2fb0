"""Comparisons of readings as views: printed numbers by readings, and what each setting changes."""

from __future__ import annotations

from collections.abc import Sequence

from unlazy.lab.draws import Draw, Tally
from unlazy.lab.registry import claims
from unlazy.report.labels import count, number, quantity_label
from unlazy.report.view import View, ViewPlot, ViewSeries, ViewTable, provenance, slug
from unlazy.studies.readings import ReadingResult, ReadingsOutcome

#: Signs of results in the matrix.
SIGNS = {"consistent": "✓", "inconsistent": "✗", "not informative": "~"}


def view(outcome: ReadingsOutcome) -> View:
    """Return the view of a comparison of readings."""
    best, names = outcome.best, ", ".join(outcome.claims)
    tally, results = best.tally, outcome.results
    searched = outcome.tried > len(results)
    tried = (
        f"{count(outcome.tried, 'reading')} tried" if searched else count(len(results), "reading")
    )
    text = f"The reading chosen for a held-out test is {outcome.chosen!r}"
    if tally.of:
        others = tally.of - tally.of_trivial
        text += (
            f": {tally.consistent} of {count(tally.of, 'printed number')} are consistent with it "
            f"({tally.consistent - tally.trivial} of the {others} that are not trivial)"
        )
    letters = _letters(results)
    return View(
        title=f"Readings of {names}",
        takeaway=f"{text}.",
        context=f"{outcome.scale} scale, {tried}, {count(len(outcome.seeds), 'development seed')}, "
        f"{outcome.seconds:.0f} s",
        lines=(
            ("Chosen", f"{outcome.chosen}: {best.reading.why}"),
            ("Rule", outcome.rule),
            ("Next", f"unlazy reproduce ID --reading '{outcome.chosen}' --controls"),
        ),
        tables=(_summary(results, letters), *_marginals(results)),
        plots=(_plot(outcome),) if tally.of else (),
        details=(
            *(
                (View("Printed numbers by readings", tables=(_matrix(results, letters),)),)
                * (tally.of > 0)
            ),
            View("Why the text allows each reading", items=tuple(map(_told, results))),
            provenance(outcome.command, outcome.seeds),
        ),
        more="Add -v for",
        kind="Readings",
        facts={
            "claims": names,
            "chosen": outcome.chosen,
            "printed numbers": str(tally),
            "scale": outcome.scale,
        },
        name=f"readings-{slug(names)[:60]}-{outcome.scale}",
        max_lines=30,
    )


def _letters(results: Sequence[ReadingResult]) -> dict[str, str]:
    return {each.reading.name: str(index) for index, each in enumerate(results, start=1)}


def _told(result: ReadingResult) -> str:
    reading = result.reading
    departs = f" Departs from: {'; '.join(reading.departs)}." if reading.departs else ""
    return f"{reading.name}: {reading.why}.{departs}"


def _summary(results: Sequence[ReadingResult], letters: dict[str, str]) -> ViewTable:
    """Return one row per reading, with counts of printed numbers and checks."""
    rows = []
    for each in results:
        tally = each.tally
        rows.append(
            (
                letters[each.reading.name],
                each.reading.name,
                f"{tally.consistent}/{tally.of}",
                f"{tally.consistent - tally.trivial}/{tally.of - tally.of_trivial}",
                str(tally.not_informative),
                str(sum(claim.strict for claim in each.claims)),
                f"{sum(c.passed for c in each.claims)}/{sum(c.checks for c in each.claims)}",
                str(len(each.reading.departs)),
            )
        )
    columns = (*("", "reading", "consistent", "not trivial", "~", "strict", "checks", "departs"),)
    caption = (
        "Consistent: the printed number lies in the 95 % prediction interval of our runs. Trivial: "
        "an end of the range, such as 100.0 %. ~ not informative: the interval also contains the "
        "mean of another method. Strict: our mean lies within printed precision and stated SD. "
        "Checks that pass, and number of departures from the text."
    )
    order = sorted(range(len(rows)), key=lambda i: results[i].score, reverse=True)
    return ViewTable(columns, tuple(rows), "Readings", caption, "rlrrrrrr", brief=tuple(order[:12]))


def _marginals(results: Sequence[ReadingResult]) -> tuple[ViewTable, ...]:
    """Return the mean number of consistent printed numbers by each choice of a searched setting."""
    settings = dict.fromkeys(name for each in results for name in each.reading.choices)
    rows = []
    for setting in settings:
        for choice in dict.fromkeys(each.reading.choices.get(setting, "") for each in results):
            mine = [r for r in results if r.reading.choices.get(setting) == choice]
            means = [sum(each.tally.consistent for each in mine) / len(mine)]
            rows.append((setting, choice, str(len(mine)), f"{means[0]:.1f}"))
    if not rows:
        return ()
    columns = ("setting", "choice", "readings", "consistent numbers, mean")
    return (ViewTable(columns, tuple(rows), "Consistent numbers by setting", align="llrr"),)


def _matrix(results: Sequence[ReadingResult], letters: dict[str, str]) -> ViewTable:
    """Return one row per printed number and one column per reading."""
    known, rows = claims(), []
    for place, claim in enumerate(results[0].claims):
        for index, first in enumerate(claim.draws):
            label = (
                quantity_label(known[claim.claim], first.quantity)
                if claim.claim in known
                else str(first.quantity)
            )
            found = [each.claims[place].draws for each in results]
            marks = [_mark(each[index]) if index < len(each) else "" for each in found]
            rows.append((claim.claim.partition("/")[2], label, first.printed, *marks))
    columns = ("claim", "quantity", "paper", *letters.values())
    caption = (
        "Columns: readings by their numbers above. ✓ consistent, ✗ inconsistent, ~ not "
        "informative; then the mean of our runs."
    )
    return ViewTable(columns, tuple(rows), "", caption, "llr" + "l" * len(letters))


def _mark(draw: Draw) -> str:
    mean = "" if draw.mean is None else f" {number(draw.mean, draw.measure)}"
    return SIGNS[draw.outcome] + mean


def _plot(outcome: ReadingsOutcome) -> ViewPlot:
    """Return the numbers of consistent printed numbers of each reading."""
    names = tuple(each.reading.name for each in outcome.results)
    tallies: list[Tally] = [each.tally for each in outcome.results]
    counts = {
        "not trivial": [tally.consistent - tally.trivial for tally in tallies],
        "trivial (such as 100.0 %)": [tally.trivial for tally in tallies],
        "strict, of all": [sum(c.strict for c in each.claims) for each in outcome.results],
    }
    kinds = ("ours", "others", "measured")
    series = tuple(
        ViewSeries(name, names, tuple(map(float, values)), mark="points", kind=kind)
        for (name, values), kind in zip(counts.items(), kinds, strict=True)
    )
    return ViewPlot(
        "Consistent printed numbers by reading",
        "reading",
        "number of printed numbers",
        series,
        categories=names,
        name="readings",
    )
