"""Documents that cannot rot: their code runs, their links and generated parts are true."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from contracts import check_family
from unlazy.lab import registry

ROOT = Path(__file__).parent.parent


def run_blocks(document):
    """Run the Python blocks of a document one after the other; returns the names they define."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, document, "exec"), names)
    return names


def test_the_code_in_contributing_runs():
    check_family(run_blocks("CONTRIBUTING.md")["Halfspace"](5))


def test_the_code_in_the_readme_runs_and_does_what_it_shows(capsys):
    names = run_blocks("README.md")
    record = names["record"]
    assert names["accuracy"] > 0.95
    assert record.value("test_accuracy") > 99 and record.value("cosine", step=2) > 0.97
    assert len(capsys.readouterr().out.splitlines()) == 3


PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
LEDGER, ERRATA = "docs/ledger.md", "docs/errata.md"


@pytest.mark.parametrize("document", [page for page in PAGES if page not in (LEDGER, ERRATA)])
def test_the_code_in_the_pages_runs(document):
    run_blocks(document)


def test_the_code_on_estimators_does_what_it_shows():
    names = run_blocks("docs/estimators.md")
    assert min(names["scores"].values()) > 0.95
    assert set(names["strongest"]) == {2, 8}, "body mass index and s5, known to matter most"
    assert names["residual"].score(names["X"], names["y"]) > 0.4


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES])
def test_local_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text()):
        assert target.startswith("http") or (ROOT / document).parent.joinpath(target).exists(), f"{document} links to {target}"


def test_the_tables_in_the_readme_are_those_of_the_results():
    """`python scripts/readme.py` writes them; nobody edits them by hand."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts" / "readme.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "README.md").read_text()
    assert script.updated(text) == text
    assert script.whole_ledger() == (ROOT / LEDGER).read_text()
    assert script.errata() == (ROOT / ERRATA).read_text()


def test_results_were_made_by_rules_that_stand():
    """A verdict that is quoted was reached under the rule that the claim has now."""
    for path in (ROOT / "results").glob("*.json"):
        if path.name != "benchmarks.json":
            for verdict in json.loads(path.read_text()):
                if verdict["verdict"] == "not run":
                    continue
                assert verdict["seeds"][0] >= registry.claims()[verdict["id"]].first_seed, (
                    f"{verdict['id']} was not judged on judging seeds"
                )
                assert verdict["rule"] == registry.claims()[verdict["id"]].rule, f"{path.name}: run `{verdict['command']}` again"
                assert verdict["older_than_rule"] == 0
