"""Pages for the authors of the papers."""

import importlib.util
from pathlib import Path

import pytest

from unlazy.lab import registry
from unlazy.lab.paper_files import Answer

ROOT = Path(__file__).parent.parent


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("paper", list(registry.editions()))
def test_each_claim_erratum_and_question_is_on_the_page_of_its_authors(paper):
    text = script("site_pages").author_page(paper)
    own = [name for name in registry.claims() if name.startswith(f"{paper}/")]
    results, _, rest = text.partition("## Questions to you")
    stored = {v["id"] for v in script("readme").verdicts()}
    for name in own:
        assert (f"`{name}`" in results) == (name in stored), name
    entries = registry.errata() | registry.discrepancies()
    assert all(f"[{name}](../errata.md#" in rest for name in entries if name.startswith(paper))
    assert registry.editions()[paper] in results
    assert f"src/unlazy/papers/{paper}/answers.md" in rest
    assert rest.rstrip().endswith("## Answers so far\n\nNone.")


def test_verdicts_are_sorted_by_what_they_say_about_the_paper():
    pages, readme = script("author_pages"), script("readme")
    every = {v["verdict"] for v in readme.verdicts()}
    assert every <= {*pages.STANDING, *pages.OPEN, "fails", "ours"}
    text = script("site_pages").author_page("malach2019")
    agrees = text.partition("## What agrees")[2].partition("## What could not be decided")[0]
    assert "`malach2019/lemma23`" in agrees and "`malach2019/theorem12`" not in agrees


def test_answers_are_shown_on_the_page_and_in_the_generated_documents(monkeypatch):
    erratum = next(iter(registry.errata()))
    paper = erratum.partition("/")[0]
    given = Answer(erratum, "2026-11-18", "A. Author", "A typo.")
    pages, readme = script("author_pages"), script("readme")
    for module in (pages, readme):
        monkeypatch.setattr(module, "answers", lambda name: (given,) if name == paper else ())
    assert pages.answered(paper) == f"- `{erratum}` (A. Author, 2026-11-18): A typo."
    assert "\n\n**Answer of A. Author, 2026-11-18:** A typo." in readme.errata()
