"""The catalogue: everything that has a name, from the papers and beyond."""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib
from collections.abc import Iterable
from typing import Any

from unlazy import rivals
from unlazy.errors import BadInput, require, unknown
from unlazy.lab.judging import Claim
from unlazy.learners.base import Learner
from unlazy.naming import Named
from unlazy.papers import PAPERS
from unlazy.tasks.base import Family


def _collect(attribute: str) -> list[Any]:
    return [getattr(importlib.import_module(f"unlazy.papers.{paper}"), attribute) for paper in PAPERS]


def claims() -> dict[str, Claim]:
    """All claims by id."""
    return {claim.id: claim for declared in _collect("CLAIMS") for claim in declared}


def tasks() -> dict[str, Named]:
    """All named task families."""
    return {name: entry for declared in _collect("TASKS") for name, entry in declared.items()}


def learners() -> dict[str, Named]:
    """All named learners: the rivals, and those of the papers."""
    return {name: entry for declared in [rivals.LEARNERS, *_collect("LEARNERS")] for name, entry in declared.items()}


def learner_of(name: str) -> Learner:
    """The learner of that name."""
    known = learners()
    if name not in known:
        raise unknown("learner", name, known)
    return known[name].thing  # type: ignore[return-value]


def family_of(name: str, changes: Iterable[str] = ()) -> Family:
    """The task family of that name, with numbers changed by texts such as "d=100"."""
    known = tasks()
    if name not in known:
        raise unknown("task", name, known)
    family = known[name].thing
    fields = {f.name: getattr(family, f.name) for f in dataclasses.fields(family)}
    adjustable = {field: value for field, value in fields.items() if isinstance(value, (bool, int, float, str))}
    found: dict[str, Any] = {}
    for change in changes:
        field, sign, text = change.partition("=")
        require(bool(sign), f"A change is written NAME=VALUE, such as d=100, but {change!r} has no '='.")
        if field not in adjustable:
            raise unknown(f"number of {name}", field, adjustable)
        found[field] = _read(field, text, adjustable[field])
    return dataclasses.replace(family, **found)  # type: ignore[return-value]


def _read(field: str, text: str, now: Any) -> Any:
    """A value of the same type as the present one."""
    if isinstance(now, bool):
        require(text in ("true", "false"), f"{field} is true or false, but {text!r} was given.")
        return text == "true"
    try:
        return type(now)(text)
    except ValueError:
        kind = "whole number" if isinstance(now, int) else "number"
        raise BadInput(f"{field} is a {kind}, such as {now}, but {text!r} was given.") from None


def find_claims(patterns: Iterable[str]) -> list[Claim]:
    """The claims whose ids match any of the patterns (`*` matches anything), each once, in the order of the ledger."""
    known, chosen = claims(), set()
    for pattern in patterns:
        matched = fnmatch.filter(known, pattern)
        if not matched:
            if any(mark in pattern for mark in "*?["):
                raise BadInput(f"No claim matches the pattern {pattern!r}. Known: {', '.join(known)}.")
            raise unknown("claim", pattern, known)
        chosen.update(matched)
    return [claim for name, claim in known.items() if name in chosen]
