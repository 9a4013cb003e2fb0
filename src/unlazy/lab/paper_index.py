"""The index from every numbered statement of a paper to its claims, their code and their tests."""

from __future__ import annotations

import ast
import dataclasses
import fnmatch
import functools
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from unlazy.core.errors import unknown
from unlazy.lab.claims import Claim, NotRun
from unlazy.lab.paper_files import PAPERS, Statement, statements
from unlazy.lab.registry import claims, discrepancies, errata, not_run

#: The folder of a source checkout; an installed package has no tests.
ROOT = PAPERS.parents[2]
#: Tests of all claims.
CONTRACT = "tests/lab/test_claims.py"


@dataclasses.dataclass(frozen=True)
class IndexEntry:
    """A numbered statement of a paper, with the claims that test it (none: see `note`)."""

    paper: str
    statement: Statement
    rows: tuple[Claim | NotRun, ...]

    def matches(self, pattern: str) -> bool:
        """Whether the pattern names the paper, a claim of the entry, or a part of its text."""
        text = f"{self.statement.statement} {self.statement.title}".casefold()
        return (
            pattern == self.paper
            or any(fnmatch.fnmatchcase(row.id, pattern) for row in self.rows)
            or pattern.casefold() in text
        )


def index(patterns: Iterable[str] = ()) -> list[IndexEntry]:
    """Return the entries of all papers that match any pattern (none: all).

    Claims that no index names, such as those of installed packages, are entries of their own.
    """
    known: dict[str, Claim | NotRun] = {**claims(), **not_run()}
    papers = dict.fromkeys(name.partition("/")[0] for name in known)
    found = [
        IndexEntry(paper, each, tuple(known[name] for name in each.claims if name in known))
        for paper in papers
        for each in statements(paper)
    ]
    named = {row.id for entry in found for row in entry.rows}
    found += [
        IndexEntry(row.id.partition("/")[0], Statement(row.where, "", "", (row.id,), ""), (row,))
        for row in known.values()
        if row.id not in named
    ]
    patterns = list(patterns)
    for pattern in patterns:
        if not any(entry.matches(pattern) for entry in found):
            raise unknown("paper, claim or statement", pattern, [*papers, *known])
    return [
        entry for entry in found if not patterns or any(entry.matches(each) for each in patterns)
    ]


def code_of(claim: Claim | NotRun) -> str:
    """Return the location of a claim, as module:line."""
    package, _, _ = claim.id.partition("/")
    literal = re.compile(rf'^.*\bid="{re.escape(claim.id)}"', re.MULTILINE)
    for path in sorted((PAPERS / package).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        if found := literal.search(source):
            line = source.count("\n", 0, found.start()) + 1
            return f"unlazy.papers.{package}.{path.stem}:{line}"
    if isinstance(claim, NotRun):
        return ""
    study: Any = inspect.unwrap(claim.study)
    code = getattr(study, "func", study).__code__
    return f"{study.__module__}:{code.co_firstlineno}"


def files_testing(claim: Claim | NotRun) -> list[str]:
    """Return the test files of a claim in a source checkout.

    These are the tests of its errata, those that import functions of its study (rare names first),
    the tests of its discrepancies, and the tests of all claims.
    """
    if isinstance(claim, NotRun) or not (ROOT / CONTRACT).exists():
        return []
    package, _, _ = claim.id.partition("/")
    names, files = set(_names(claim.study, f"unlazy.papers.{package}")), _used_names(package)
    often = Counter(name for used in files.values() for name in used)
    shared = {path: sum(1 / often[name] for name in names & files[path]) for path in files}
    return list(
        dict.fromkeys(
            [
                *(errata()[name].test.partition("::")[0] for name in claim.corrections),
                *sorted((path for path in shared if shared[path]), key=lambda path: -shared[path]),
                *(discrepancies()[name].test.partition("::")[0] for name in claim.discrepancies),
                CONTRACT,
            ]
        )
    )


def _names(study: Callable[..., Any], package: str) -> Iterator[str]:
    """Yield the functions and classes of a paper that a study uses, and their modules."""
    seen: set[str] = set()
    todo: list[Any] = [study]
    while todo:
        function = todo.pop()
        function = inspect.unwrap(getattr(function, "func", function))
        module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
        inside = module.startswith(package) or not seen  # a study may be made by `variants`
        if not inside or f"{module}.{name}" in seen:
            continue
        seen.add(f"{module}.{name}")
        yield from (module, f"{module}.{name}")
        if isinstance(function, FunctionType):
            todo += [cell.cell_contents for cell in function.__closure__ or ()]
            todo += [function.__globals__.get(each) for each in _loaded(function.__code__)]


def _loaded(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded(constant)


@functools.cache
def _used_names(paper: str) -> dict[str, set[str]]:
    """Return what each test file of a paper imports from it."""
    package, found = f"unlazy.papers.{paper}", {}
    for path in sorted((ROOT / "tests" / "papers" / paper).glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[path.relative_to(ROOT).as_posix()] = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package)
            for alias in node.names
        }
    return found
