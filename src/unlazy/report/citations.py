"""Citations of papers and of this package."""

from __future__ import annotations

import re
from collections.abc import Iterable

import unlazy
from unlazy.core.errors import unknown
from unlazy.lab import registry
from unlazy.lab.plugins import prefixes

#: Initials and surname, at the beginning or after a comma.
_AUTHOR = re.compile(r"(?:^|, )(?:[A-Z]\.[ -]?)+([\w-]+)")
TOOL = """@software{{unlazy,
  title = {{unlazy: where gradient descent learns features}},
  author = {{{{The unlazy developers}}}},
  version = {{{version}}},
  license = {{Apache-2.0}}
}}"""


def tool() -> str:
    """Return BibTeX of this version of unlazy."""
    return TOOL.format(version=unlazy.__version__)


def papers() -> dict[str, str]:
    """Return BibTeX of every paper by its name; a paper without BibTeX is cited as a note."""
    found = {}
    for catalog in registry.catalogs():
        citation = getattr(catalog, "CITATION", None)
        if citation is not None or hasattr(catalog, "BIBTEX"):
            for name in prefixes(catalog):
                note = f"@misc{{{name},\n  note = {{{citation}}}\n}}"
                found[name] = getattr(catalog, "BIBTEX", note)
    return found


def short_citation(paper: str) -> str:
    """Return authors and year of a paper, such as "Shi et al. 2022"; its name if not cited."""
    for catalog in registry.catalogs():
        if paper in prefixes(catalog) and hasattr(catalog, "CITATION"):
            authors = _AUTHOR.findall(catalog.CITATION)
            names = authors[0] if len(authors) == 1 else " and ".join(authors)
            names = f"{authors[0]} et al." if len(authors) > 2 else names
            return f"{names} {paper[-4:]}"
    return paper


def entries(ids: Iterable[str]) -> list[str]:
    """Return BibTeX of the papers of these ids, each once, and of unlazy.

    An id is that of a claim, task, learner or paper.
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
