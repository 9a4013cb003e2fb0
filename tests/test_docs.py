"""Documents that cannot rot: their code runs, their links and generated parts are true."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from contracts import check_family
from unlazy import papers

ROOT = Path(__file__).parent.parent


def test_the_code_in_contributing_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    check_family(names["Halfspace"](5))


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_local_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text()):
        assert target.startswith("http") or (ROOT / target).exists(), f"{document} links to {target}"


def test_the_tables_in_the_readme_are_those_of_the_results():
    """`python scripts/readme.py` writes them; nobody edits them by hand."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts" / "readme.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "README.md").read_text()
    assert script.updated(text) == text


def test_results_were_made_by_rules_that_stand():
    """A verdict that is quoted was reached under the rule that the claim has now."""
    for path in (ROOT / "results").glob("*.json"):
        if path.name != "benchmarks.json":
            for verdict in json.loads(path.read_text()):
                assert verdict["rule"] == papers.claims()[verdict["id"]].rule, f"{path.name}: run `{verdict['command']}` again"
                assert verdict["older_than_rule"] == 0
