"""Functions of the package that run, to compare with the coverage of a fingerprint."""

import ast
import contextlib
import sys
import threading
from pathlib import Path

import unlazy
from unlazy.core.naming import Ingredients
from unlazy.core.source_code import is_computing, module_of, reach
from unlazy.core.user_code import is_users
from unlazy.lab.provenance import ENGINE

ROOT = Path(unlazy.__file__).parent


@contextlib.contextmanager
def executed():
    """Collect (module, top-level name) of all functions of computing modules that are called."""
    seen = set()
    names = {}

    def module_name(path):
        if path not in names:
            names[path] = None
            with contextlib.suppress(ValueError):
                parts = Path(path).relative_to(ROOT).with_suffix("").parts
                inner = [part for part in parts if part != "__init__"]
                found = ".".join(["unlazy", *inner])
                names[path] = found if is_computing(found) else None
        return names[path]

    def profile(frame, event, argument):
        if event == "call":
            module = module_name(frame.f_code.co_filename)
            if module is not None:
                seen.add((module, frame.f_code.co_firstlineno))

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def uncovered(seen, trial):
    """Return functions that ran but are not covered by the fingerprint of the trial."""
    parts = Ingredients()
    trial._described(brief=True, parts=parts)
    if any(is_users(thing) for thing in parts.things):
        return set()  # then all computing modules are covered
    roots = [
        (thing.__module__, thing.__qualname__.split(".")[0])
        for thing in parts.things
        if (thing.__module__ or "").startswith("unlazy.")
    ]
    spans = {
        module: [_span(entry.node) for entry in entries]
        for module, entries in reach([ENGINE, *roots]).items()
    }
    found = set()
    for module, line in seen:
        if not any(first <= line <= last for first, last in spans.get(module, ())):
            found.add((module, _name_at(module, line)))
    return {place for place in found if place[1] is not None}


def _span(node):
    decorators = [each.lineno for each in getattr(node, "decorator_list", ())]
    return min([node.lineno, *decorators]), node.end_lineno


def _name_at(module, line):
    """Return the definition around a line; None for module code, which runs on import."""
    for name, entries in module_of(module).definitions.items():
        for entry in entries:
            first, last = _span(entry.node)
            if first <= line <= last and not isinstance(entry.node, ast.Assign | ast.AnnAssign):
                return name
    return None
