"""The catalogue: everything that has a name, from the papers and beyond."""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Iterable
from typing import Any

from unlazy.errors import BadInput, unknown
from unlazy.lab.judging import Claim
from unlazy.naming import Named
from unlazy.papers import PAPERS


def _collect(attribute: str) -> list[Any]:
    return [getattr(importlib.import_module(f"unlazy.papers.{paper}"), attribute) for paper in PAPERS]


def claims() -> dict[str, Claim]:
    """All claims by id."""
    return {claim.id: claim for declared in _collect("CLAIMS") for claim in declared}


def tasks() -> dict[str, Named]:
    """All named task families."""
    return {name: entry for declared in _collect("TASKS") for name, entry in declared.items()}


def learners() -> dict[str, Named]:
    """All named learners."""
    return {name: entry for declared in _collect("LEARNERS") for name, entry in declared.items()}


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
