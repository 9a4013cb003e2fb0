"""Documents: their code runs, and their links and generated parts are correct."""

import importlib
import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path

import click
import matplotlib
import matplotlib.pyplot as plt
import pytest

import unlazy
from contracts import check_family
from selection import slow_but
from unlazy.cli.main import main
from unlazy.lab import registry

ROOT = Path(__file__).parent.parent


def run_blocks(document):
    """Run the Python blocks of a document in order; return the names they define."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, document, "exec"), names)
    return names


def test_the_code_in_contributing_runs():
    check_family(run_blocks("CONTRIBUTING.md")["Halfspace"](5))


@pytest.mark.slow
def test_the_code_in_the_readme_runs(capsys):
    run_blocks("README.md")
    assert capsys.readouterr().out.startswith("At n = 300, ")


@pytest.mark.slow
def test_the_code_on_the_python_page_gives_its_results(capsys):
    names = run_blocks("docs/howto/python.md")
    record = names["record"]
    assert names["accuracy"] > 0.95
    assert record.value("test_accuracy") > 99 and record.value("cosine", step=2) > 0.97
    assert len(capsys.readouterr().out.splitlines()) == 3


#: Pages that are not generated.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("docs", "docs/howto", "docs/summaries")
    for path in (ROOT / folder).glob("*.md")
)
#: Folders that `make docs` generates.
GENERATED = ("papers/", "interface/", "examples/", "figures/")
LEDGER, ERRATA = "docs/ledger.md", "docs/errata.md"
WITH_CODE = [page for page in PAGES if "```python" in (ROOT / page).read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    "document",
    slow_but(
        ("docs/first-task.md",),
        [page for page in WITH_CODE if page not in ("docs/howto/python.md", "docs/estimators.md")],
    ),
)
def test_the_code_in_the_pages_runs(document):
    run_blocks(document)


def commands_in(document):
    """Return all calls of unlazy in blocks that are not Python, without comments."""
    for kind, block in re.findall(
        r"```(\w*)\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL
    ):
        for line in block.splitlines() if kind == "" else ():
            yield from (
                words
                for part in line.partition(" #")[0].split("&&")
                if (words := shlex.split(part)) and words[0] == "unlazy"
            )


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        *(page for page in PAGES if page not in (LEDGER, ERRATA)),
    ],
)
def test_the_commands_in_documents_are_commands(document):
    """Options, choices and registered names exist."""
    for _, verb, *words in commands_in(document):
        with main.commands[verb].make_context(verb, words) as context:
            for name in context.params.get("names", ()):
                assert name in registry.learners(), name
            if verb == "reproduce":
                assert all(
                    ":" in each or registry.find_claims([each]) for each in context.params["ids"]
                )
            if verb in ("compare", "scaling") and ":" not in context.params["task"]:
                registry.family_of(context.params["task"], context.params["changes"])


def test_an_invalid_command_in_a_document_is_detected(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text("```\nunlazy compare parity --lerner ntk   # a typo\n```\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (command,) = commands_in("page.md")
    with pytest.raises(click.NoSuchOption):
        main.commands[command[1]].make_context(command[1], command[2:])


EXAMPLES = sorted(path.stem for path in (ROOT / "docs" / "gallery").glob("*.py"))


@pytest.mark.parametrize("stem", slow_but(("plot_spectrum", "plot_estimator"), EXAMPLES))
def test_the_gallery_runs(stem, monkeypatch):
    example = ROOT / "docs" / "gallery" / f"{stem}.py"
    monkeypatch.setenv("MPLBACKEND", "agg")
    matplotlib.use("agg")
    exec(
        compile(example.read_text(encoding="utf-8"), str(example), "exec"), {"__name__": "__main__"}
    )
    plt.close("all")


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: Verdicts in the results.
VERDICTS = {
    v["id"]: v["verdict"]
    for path in (ROOT / "results").glob("*-laptop.json")
    for v in json.loads(path.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize(
    "paper",
    slow_but(("malach2019",), sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))),
)
def test_every_paper_has_a_notebook_that_runs(paper):
    text = (ROOT / "notebooks" / f"{paper}.ipynb").read_text(encoding="utf-8")
    assert text == script("notebooks").written(paper), "run `python scripts/notebooks.py`"
    names: dict = {}
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), paper, "exec"), names)
    assert names["verdict"].outcome == (
        "undecided" if names["verdict"].scale == "smoke" else VERDICTS[names["verdict"].claim.id]
    )


def test_every_public_name_and_paper_has_a_page():
    """`make docs` generates a page for every public name and every paper."""
    pages = script("site_pages")
    assert sum(text.count("```{eval-rst}") for text in pages.interface().values()) == len(
        unlazy._HOMES
    )
    for paper in pages.papers():
        text = pages.paper_page(paper)
        assert "## Summary" in text and "## Results" in text and f"`{paper}/" in text
        assert f"## Errata\n\n{registry.editions()[paper]}" in text
        entries = registry.errata() | registry.discrepancies()
        own = [name for name in entries if name.startswith(f"{paper}/")]
        assert all(f"- [{name}](../errata.md#" in text for name in own)


def test_errata_and_questions_are_listed_under_the_text_that_was_read():
    text, _, questions = (ROOT / ERRATA).read_text().partition("## Questions to the authors")
    assert all(edition in text for edition in registry.editions().values())
    assert all(f"\n### {name}\n" in text for name in registry.errata())
    for each in registry.discrepancies().values():
        assert f"\n### {each.id}\n" in questions and f"**{each.question}**" in questions
        assert registry.editions()[each.id.partition("/")[0]] in questions


@pytest.mark.slow
def test_the_code_on_estimators_gives_its_results():
    names = run_blocks("docs/estimators.md")
    assert min(names["scores"].values()) > 0.95
    assert set(names["strongest"]) == {2, 8}, (
        "body mass index and s5 are known to be most predictive"
    )
    assert names["residual"].score(names["X"], names["y"]) > 0.4


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", *PAGES]
)
def test_local_links_exist(document):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text()):
        generated = target.startswith(GENERATED)
        assert (
            generated
            or target.startswith("http")
            or (ROOT / document).parent.joinpath(target).exists()
        ), f"{document} links to {target}"


def test_generated_tables_are_those_of_the_results():
    """`python scripts/readme.py` writes them."""
    readme = script("readme")
    for name in readme.PARTS:
        assert readme.updated(name) == (ROOT / name).read_text()
    assert readme.whole_ledger() == (ROOT / LEDGER).read_text()
    assert readme.errata() == (ROOT / ERRATA).read_text()


def test_results_were_made_by_the_current_rules():
    """Each stored verdict used the current rule of its claim, on held-out seeds."""
    for path in (ROOT / "results").glob("*.json"):
        if path.name != "benchmarks.json":
            for verdict in json.loads(path.read_text()):
                if verdict["verdict"] == "not run":
                    continue
                assert verdict["seeds"][0] >= registry.claims()[verdict["id"]].first_seed, (
                    f"{verdict['id']} did not use held-out seeds"
                )
                assert verdict["rule"] == registry.claims()[verdict["id"]].rule, (
                    f"{path.name}: run `{verdict['command']}` again"
                )
                assert verdict["older_than_rule"] == 0
