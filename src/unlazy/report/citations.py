"""Citations: BibTeX of a paper whose claim was run, and of this tool."""

from __future__ import annotations

from collections.abc import Iterable

import unlazy
from unlazy.core.errors import unknown
from unlazy.lab import registry

TOOL = """@software{{unlazy,
  title = {{unlazy: where gradient descent learns features}},
  author = {{{{The unlazy developers}}}},
  version = {{{version}}},
  license = {{Apache-2.0}}
}}"""


def tool() -> str:
    """This tool, in this version."""
    return TOOL.format(version=unlazy.__version__)


def papers() -> dict[str, str]:
    """BibTeX of every paper by its name; of one that has none, what it says of itself as a note."""
    found = {}
    for catalog in registry.catalogs():
        citation = getattr(catalog, "CITATION", None)
        if citation is not None:
            name = catalog.__name__.rpartition(".")[2]
            found[name] = getattr(catalog, "BIBTEX", f"@misc{{{name},\n  note = {{{citation}}}\n}}")
    return found


def entries(ids: Iterable[str]) -> list[str]:
    """The papers that ids belong to, each once, and the tool.

    An id is that of a claim, a task, a learner, or of the paper itself.
    """
    known = papers()
    names = {
        *known,
        *registry.claims(),
        *registry.not_run(),
        *registry.tasks(),
        *registry.learners(),
    }
    found: dict[str, str] = {}
    for each in ids:
        paper = each.partition("/")[0]
        if each.strip("*/") not in known and each not in names:
            raise unknown("claim, task, learner or paper", each, names)
        if paper in known:
            found[paper] = known[paper]
    return [*found.values(), tool()]
