"""Files next to the claims of a paper: published tables, notes, definitions, and the index.

papers/NAME/published/*.csv   numbers as the paper prints them
papers/NAME/notes.md          deviations from the paper, and changes made after a run
papers/NAME/quantities.csv    definitions of measured quantities (lab/quantities.csv: shared ones)
papers/NAME/index.csv         every numbered statement, with the claims that test it
papers/NAME/answers.md        answers of the authors about claims, errata and questions
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import fnmatch
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from unlazy.core.errors import BadInput, require, unknown
from unlazy.lab.rules import Change, Published, Quantity, variant_name

LAB = Path(__file__).parent
PAPERS = LAB.parent / "papers"
#: The section of notes to which claims refer by links such as `[step-sizes](#step-sizes)`.
SHARED = "Shared"
_LINK = re.compile(r"\[([\w-]+)\]\(#\1\)")
_ANSWER = re.compile(r"(\d{4}-\d{2}-\d{2}), ([^:]+): (.+)")
_CHANGE = re.compile(r"(\d{4}-\d{2}-\d{2}), seeds from (\d+)")


def rows_of(path: Path, *columns: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file, which must have these columns and no ragged rows."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="", strict=True)
        missing = set(columns) - set(reader.fieldnames or ())
        require(not missing, f"{path} has no column {', '.join(sorted(missing))}.")
        rows = []
        for row in reader:
            ragged = "" in row or None in row.values()
            require(not ragged, f"{path}:{reader.line_num}: this row does not fit the header.")
            rows.append(row)
        return rows


def published(file: str, folder: Path = PAPERS) -> tuple[Published, ...]:
    """Return the numbers of a published table, such as "shi2022/table1.csv".

    A row is a `measure` and every further column an arm, or a row is an `arm` and every further
    column a measure. `variant` names the variant of the study, `step` the step of a curve,
    `deviation` the standard deviation that the paper states, and `runs` the number of runs that it
    averages. An empty cell is a number that the paper does not print.
    """
    paper, _, name = file.partition("/")
    path = folder / paper / "published" / name
    found = []
    for row in rows_of(path):
        variant, deviation = row.pop("variant", ""), float(row.pop("deviation", "") or 0)
        runs, step = int(row.pop("runs", "") or 1), row.pop("step", "")
        arm, measure = row.pop("arm", None), row.pop("measure", None)
        require((arm is None) != (measure is None), f"{path}: a row is an arm or a measure.")
        for column, printed in row.items():
            quantity = Quantity(
                variant_name(arm or column, variant),
                measure or column,
                int(step) if step else None,
            )
            place = f"{file} {variant} {quantity.measure} {step}"
            if printed:
                found.append(Published(quantity, printed, deviation, runs, place))
    return tuple(found)


class Notes(TypedDict):
    """Deviations of a claim from its paper, and changes made after a run."""

    deviations: tuple[str, ...]
    history: tuple[Change, ...]


@dataclasses.dataclass
class _Item:
    """An item of a list: file and line, and its lines without the first indentation."""

    place: str
    lines: list[str]


@functools.cache
def _sections(path: Path) -> dict[str, dict[str, list[_Item]]]:
    """Return items by section (`##`) and part (`###`)."""
    sections: dict[str, dict[str, list[_Item]]] = {}
    parts: dict[str, list[_Item]] = {}
    items: list[_Item] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        place = f"{path}:{number}"
        if line.startswith(("## ", "### ")):
            level, _, title = line.partition(" ")
            within = sections if level == "##" else parts
            require(title not in within, f"{place}: {title!r} occurs twice.")
            if level == "##":
                parts, items = sections.setdefault(title, {}), None
            else:
                items = parts.setdefault(title, [])
        elif line.startswith("- ") and items is not None:
            items.append(_Item(place, [line[2:]]))
        elif line.startswith("  ") and items:
            items[-1].lines.append(line[2:])
        elif line.strip() and sections:
            raise BadInput(f"{place}: expected a heading, or an item below one, got {line!r}.")
    return sections


def note_sections(paper: str, folder: Path = PAPERS) -> dict[str, list[str]]:
    """Return the titles of a paper's notes, each with the shared items that it links to."""
    found: dict[str, list[str]] = {}
    for section, parts in _sections(folder / paper / "notes.md").items():
        for part, items in parts.items():
            links = [link[1] for item in items if (link := _LINK.fullmatch(item.lines[0]))]
            found.setdefault(part if section == SHARED else section, []).extend(links)
    return found


def notes(claim: str, folder: Path = PAPERS) -> Notes:
    """Return the notes of a claim, from the section of its paper's `notes.md`."""
    paper, _, name = claim.partition("/")
    path = folder / paper / "notes.md"
    sections = _sections(path)
    if name not in sections:
        raise unknown(f"section of {path}", name, sections)
    shared = sections.get(SHARED, {})
    empty: dict[str, list[_Item]] = {"Deviations": [], "History": []}
    parts = empty | sections[name]
    if len(parts) > 2:
        raise unknown(f"part of {name} in {path}", list(parts)[2], ("Deviations", "History"))
    return Notes(
        deviations=tuple(
            " ".join(map(str.strip, item.lines)) for item in _items(parts["Deviations"], shared)
        ),
        history=tuple(_change(item) for item in _items(parts["History"], shared)),
    )


def _items(own: list[_Item], shared: dict[str, list[_Item]]) -> Iterator[_Item]:
    """Replace links by the shared items that they lead to."""
    for item in own:
        link = _LINK.fullmatch(item.lines[0]) if len(item.lines) == 1 else None
        if link is None:
            yield item
        else:
            require(link[1] in shared, f"{item.place}: there is no shared item {link[1]!r}.")
            yield from _items(shared[link[1]], shared)


def _change(item: _Item) -> Change:
    """Read a change: date and first seed, then what was changed, and why."""
    head, *rest = item.lines
    found = _CHANGE.fullmatch(head)
    texts: dict[str, str] = {}
    for line in rest:
        label, colon, text = line.removeprefix("- ").partition(": ")
        if line.startswith("- ") and colon and label not in texts:
            texts[label] = text.strip()
        elif line.startswith("  ") and texts:
            texts[list(texts)[-1]] += " " + line.strip()
        else:
            texts["malformed"] = line
    require(
        found is not None and list(texts) == ["what", "why"] and all(texts.values()),
        f'{item.place}: a change is written "DATE, seeds from NUMBER", then "- what: ..." and '
        f'"- why: ...", got {item.lines}.',
    )
    assert found is not None
    _require_date(found[1], item.place)
    return Change(found[1], texts["what"], texts["why"], int(found[2]))


@dataclasses.dataclass(frozen=True)
class Answer:
    """What an author of a paper answered about a claim, an erratum or a question."""

    about: str
    date: str
    author: str
    text: str


def answers(paper: str, folder: Path = PAPERS) -> tuple[Answer, ...]:
    """Return the answers of the authors of a paper, in the order of its `answers.md`.

    A section `## ID` is a list of "DATE, NAME: TEXT". All before the first section is instructions.
    """
    path = folder / paper / "answers.md"
    if not path.exists():
        return ()
    found, about = [], ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        place = f"{path}:{number}"
        if line.startswith("## "):
            about = line[3:].strip()
        elif about and line.startswith("- "):
            written = _ANSWER.fullmatch(line[2:])
            require(
                written is not None,
                f'{place}: an answer is written "- DATE, NAME: TEXT", got {line!r}.',
            )
            assert written is not None
            _require_date(written[1], place)
            found.append(Answer(about, *written.groups()))
        elif about and found and line.startswith("  "):
            last = found[-1]
            found[-1] = dataclasses.replace(last, text=f"{last.text} {line.strip()}")
        elif about and line.strip():
            raise BadInput(f"{place}: expected a heading or an answer, got {line!r}.")
    return tuple(found)


def _require_date(text: str, place: str) -> None:
    """Require a date such as 2026-11-18."""
    try:
        datetime.date.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{place}: {error}.") from None


@dataclasses.dataclass(frozen=True)
class QuantityDefinition:
    """A measured quantity in words, in the paper's notation (LaTeX), and its unit.

    `claim` is a pattern of claims without the paper's name; empty: all claims of the paper.
    """

    measure: str
    claim: str
    definition: str
    notation: str
    unit: str


@functools.cache
def definitions(paper: str = "", folder: Path = PAPERS) -> tuple[QuantityDefinition, ...]:
    """Return the definitions of a paper, or those that papers share (no name)."""
    path = folder / paper / "quantities.csv" if paper else LAB / "quantities.csv"
    columns = [field.name for field in dataclasses.fields(QuantityDefinition)]
    return (
        tuple(QuantityDefinition(**row) for row in rows_of(path, *columns)) if path.exists() else ()
    )


def definition_of(claim: str, measure: str, folder: Path = PAPERS) -> QuantityDefinition | None:
    """Return the definition of a quantity: the claim's own, the paper's, or the shared one."""
    paper, _, name = claim.partition("/")
    found = [each for each in definitions(paper, folder) if each.measure == measure]
    own = [each for each in found if each.claim and fnmatch.fnmatchcase(name, each.claim)]
    whole = [each for each in found if not each.claim]
    shared = [each for each in definitions() if each.measure == measure]
    return next(iter([*own, *whole, *shared]), None)


@dataclasses.dataclass(frozen=True)
class Statement:
    """A numbered statement of a paper, and the claims (full ids) that test it.

    `note`: why no claim does.
    """

    statement: str
    section: str
    title: str
    claims: tuple[str, ...]
    note: str


def statements(paper: str, folder: Path = PAPERS) -> tuple[Statement, ...]:
    """Return the index of a paper."""
    path = folder / paper / "index.csv"
    columns = [field.name for field in dataclasses.fields(Statement)]
    rows = rows_of(path, *columns) if path.exists() else []
    return tuple(
        Statement(
            row["statement"],
            row["section"],
            row["title"],
            tuple(f"{paper}/{name}" for name in row["claims"].split()),
            row["note"],
        )
        for row in rows
    )
