"""Generated pages of the documentation: one per paper from results/ and the registry, and the API
reference from docstrings.

`docs/conf.py` calls `write` before each build; the pages are not in the repository.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import unlazy
from unlazy.lab import registry
from unlazy.lab.paper_files import definitions
from unlazy.lab.paper_index import code_of, files_testing, index
from unlazy.report.formulas import mathml, plain
from unlazy.report.labels import MARKS, _labels
from unlazy.report.markdown import escaped
from unlazy.report.view import slug

ROOT = Path(__file__).parent.parent
#: Pages of the API reference: title, and modules whose public names are shown.
PAGES = {
    "Functions": ("unlazy.api",),
    "Tasks and data": ("unlazy.tasks", "unlazy.core.metrics", "unlazy.core.random"),
    "Networks": ("unlazy.networks", "unlazy.core.activations"),
    "Kernels": ("unlazy.kernels",),
    "Learners": ("unlazy.learners",),
    "Probes": ("unlazy.probes",),
    "Tables": ("unlazy.tables",),
    "Trials and studies": ("unlazy.lab", "unlazy.studies", "unlazy.core"),
}


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def papers() -> list[str]:
    """Return all papers, in the order of the package."""
    return list(importlib.import_module("unlazy.papers").PAPERS)


def paper_page(paper: str) -> str:
    """Return the page of a paper: summary, verdicts, figures, errata, questions."""
    readme = _script("readme")
    module = importlib.import_module(f"unlazy.papers.{paper}")
    found = [v for v in readme.verdicts() if v["id"].startswith(f"{paper}/")]
    ran = [v for v in found if v["verdict"] != "not run"]
    title = title_of(module)
    parts = [
        f"# {title}",
        f"*{module.CITATION}* (`{paper}`) [To the authors]({author_name(paper)}.md)",
    ]
    walkthrough = ROOT / "docs" / "summaries" / f"{paper}.md"
    parts.append(
        walkthrough.read_text(encoding="utf-8").strip()
        if walkthrough.exists()
        else (module.__doc__ or "").splitlines()[0]
    )
    parts.append(f"## Results\n\n{tally(ran)}\n\n{verdict_list(ran)}")
    told = readme.reasons(ran)
    if told:
        parts.append(f"### Statements that are not confirmed\n\n{told}")
    waiting = [v for v in found if v["verdict"] == "not run"]
    if waiting:
        parts.append(
            "### Not run\n\n"
            + "\n".join(
                f"- `{v['id']}`: {escaped(v['statement'])} *{escaped(readme.not_run_reason(v))}*"
                for v in waiting
            )
        )
    parts += [f"## Index\n\n{index_table(paper)}", f"## Measured quantities\n\n{quantities(paper)}"]
    parts += figures(paper)
    corrected = {
        e.id: f"{e.where}: {e.correction}" for e in readme.of_paper(paper, registry.errata())
    }
    parts.append(f"## Errata\n\n{module.EDITION}\n\n{links(readme, corrected) or NO_ERRATA}")
    asked = {
        q.id: f"{q.where}: {q.question}" for q in readme.of_paper(paper, registry.discrepancies())
    }
    if asked:
        parts.append(
            "## Questions to the authors\n\nAbout printed results that differ from computed ones "
            f"in the text described above.\n\n{links(readme, asked)}"
        )
    tasks, learners = (
        "\n".join(
            f"- `{name}`: {entry.summary}"
            for name, entry in of().items()
            if name.startswith(f"{paper}/")
        )
        for of in (registry.tasks, registry.learners)
    )
    if tasks or learners:
        parts.append(f"## Tasks and learners\n\nTasks:\n\n{tasks}\n\nLearners:\n\n{learners}")
    return "\n\n".join(parts) + "\n"


def author_name(paper: str) -> str:
    """Return the name of the page for the authors of a paper."""
    return f"{paper}-authors"


def author_page(paper: str) -> str:
    """Return the page for the authors of a paper."""
    title = title_of(importlib.import_module(f"unlazy.papers.{paper}"))
    text: str = _script("author_pages").author_page(paper, title, _script("readme"))
    return text


def links(readme: Any, entries: dict[str, str]) -> str:
    """Return entries of the errata as a list with links."""
    return "\n".join(
        f"- [{name}](../errata.md#{readme.anchor(name)}), {text}" for name, text in entries.items()
    )


def title_of(module: Any) -> str:
    """Return the title of a paper from its BibTeX."""
    found = re.search(r"title = \{(.*?)\},\n", module.BIBTEX, re.DOTALL)
    assert found is not None, f"{module.__name__} has a BIBTEX without a title"
    return " ".join(found[1].replace("{", "").replace("}", "").split())


def tally(found: list[dict[str, Any]]) -> str:
    """Return the verdicts in one sentence."""
    best = {v["id"]: v for v in found}  # the larger scale, if a claim was run at two
    counts = Counter(MARKS[v["verdict"]] for v in best.values())
    return (
        f"{len(best)} claims were run: "
        + ", ".join(f"{mark} ({count})" for mark, count in counts.most_common())
        + "."
    )


def verdict_list(found: list[dict[str, Any]]) -> str:
    """Return one entry per claim: verdicts with links to details, numbers, and the statement."""
    readme = _script("readme")
    entries = []
    for name in dict.fromkeys(v["id"] for v in found):
        runs, claim = [v for v in found if v["id"] == name], registry.claims()[name]
        scales: dict[str, list[str]] = {}
        for v in runs:
            link = f"[{v['scale']}](../ledger.md#{readme.details_anchor(v)})"
            scales.setdefault(MARKS[v["verdict"]], []).append(link)
        verdicts = ", ".join(f"{mark} ({', '.join(links)})" for mark, links in scales.items())
        numbers, draws = runs[-1]["numbers"], runs[-1].get("draws", ())
        matched = (
            f"; {numbers['reproduced']} of {numbers['of']} published numbers strictly reproduced"
        )
        if draws:
            consistent = sum(draw["outcome"] == "consistent" for draw in draws)
            strict = f"{numbers['reproduced']} strictly reproduced"
            matched = f"; {consistent} of {len(draws)} published numbers consistent, {strict}"
        entries.append(
            f"`{name}`: {verdicts}{matched if numbers['of'] else ''}\n"
            f": {escaped(claim.statement)} *({escaped(claim.where)})*"
        )
    return "\n\n".join(entries)


def index_table(paper: str) -> str:
    """Return every numbered statement of a paper with its claims, their code, and a test.

    Claims, code and tests of the paper are named without their folder.
    """
    lines = ["| statement | about | claims | code | test |", "|---|---|---|---|---|"]
    for entry in index([paper]):
        first, said = entry.rows[:1], entry.statement
        cells = [
            said.statement,
            escaped(said.title) + (f" *({escaped(said.note)})*" if said.note else ""),
            ", ".join(f"`{row.id.partition('/')[2]}`" for row in entry.rows) or "none",
            "".join(f"`{_short(code_of(row), paper)}`" for row in first),
            "".join(f"`{Path(path).name}`" for row in first for path in files_testing(row)[:1]),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _short(code: str, paper: str) -> str:
    """Return a place such as `unlazy.papers.NAME.rows:12` without the folder of its paper."""
    return code.removeprefix(f"unlazy.papers.{paper}.")


def quantities(paper: str) -> str:
    """Return definitions of measured quantities, in words and in the paper's notation."""
    return "\n\n".join(
        f"{_label(paper, each)} (`{each.measure}`{f', {each.claim}' if each.claim else ''})\n"
        f": {escaped(each.definition)}"
        f"{'' if each.unit == '1' else f' Unit: {each.unit}.'}\n\n  {_displayed(each.notation)}"
        for each in definitions(paper)
    )


def _label(paper: str, definition: Any) -> str:
    """Return the label of a quantity, or its first words if it has none."""
    rows = [row for row in _labels(paper) if row["measure"] == definition.measure]
    rows.sort(key=lambda row: (row["claim"] != (definition.claim or ""), bool(row["claim"])))
    first = definition.definition.partition(".")[0].partition(",")[0]
    return escaped(plain(rows[0]["label"] if rows else first))


def _displayed(latex: str) -> str:
    """Return a formula on a line of its own, which scrolls if it is too wide."""
    formula = mathml(latex).replace('display="inline"', 'display="block"', 1)
    return f'<div class="formula">{formula}</div>'


#: Text of a paper without entries in the errata.
NO_ERRATA = "No erratum is recorded."
#: Captions of the figures in results/figures.
FIGURES = {
    "glasgow2023-scaling-laptop-examples-to-5-error": "`glasgow2023/scaling` at laptop scale: "
    "training examples to a test error of 5 % versus the dimension d. Dashed: predicted for "
    "the NTK.",
    "shi2022-table1-laptop-accuracy": "`shi2022/table1` at laptop scale: test accuracy during "
    "training, mean over 5 seeds with its 95 % CI. Steps are spaced as log(1 + step).",
    "shi2022-table1-laptop-neurons-network": "`shi2022/table1` at laptop scale: neurons of the "
    "network, seed 1100. Each plane shows cosine similarities, by classical multidimensional "
    "scaling; the radius is the norm of the projected unit weight vector.",
    "shi2022-task-benchmark": "Comparison of learners on `shi2022/task`, 3 seeds. Bars: 95 % CI; "
    "points of equal n are shifted. Open marks: fixed features.",
}


def figures(paper: str) -> list[str]:
    """Return the figures of a paper."""
    found = sorted((ROOT / "results" / "figures").glob(f"{paper}-*.png"))
    if not found:
        return []
    rows = [
        f"![{FIGURES[path.stem].replace('`', '')}](../figures/{path.name})\n\n{FIGURES[path.stem]}"
        for path in found
    ]
    return [
        "## Figures\n\nMade by `unlazy report --figures` and `unlazy compare --figure`.\n\n"
        + "\n\n".join(rows)
    ]


def interface() -> dict[str, str]:
    """Return the pages of the API reference by name."""
    left = dict(sorted(unlazy._HOMES.items()))
    pages = {}
    for title, modules in PAGES.items():
        names = [
            name
            for name, home in left.items()
            if any(home == module or home.startswith(f"{module}.") for module in modules)
        ]
        for name in names:
            del left[name]
        pages[slug(title)] = "\n\n".join([f"# {title}", *(_entry(name) for name in names)]) + "\n"
    assert not left, f"names without a page: {left}"
    return pages


def _entry(name: str) -> str:
    value = getattr(unlazy, name)
    if isinstance(value, type):
        return f"```{{eval-rst}}\n.. autoclass:: unlazy.{name}\n```"
    if callable(value):
        return f"```{{eval-rst}}\n.. autofunction:: unlazy.{name}\n```"
    return f"```{{eval-rst}}\n.. autodata:: unlazy.{name}\n   :no-value:\n```"


def bare_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save figures that were not made by pyplot for the gallery, each once."""
    from matplotlib.figure import Figure
    from sphinx_gallery.scrapers import figure_rst

    paths = []
    for value in block_vars["example_globals"].values():
        if (
            isinstance(value, Figure)
            and getattr(value, "number", None) is None
            and not getattr(value, "_shown_in_gallery", False)
        ):
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=120)
            value._shown_in_gallery = True  # type: ignore[attr-defined]
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


def commands() -> str:
    """Return the page of all commands, from their help."""
    import click

    from unlazy.cli.main import main

    parts = [
        "# Commands",
        "`unlazy --help` lists all commands, and `unlazy COMMAND --help` describes one.",
    ]
    for name, command in main.commands.items():
        with click.Context(
            command, info_name=f"unlazy {name}", terminal_width=88, max_content_width=88
        ) as context:
            parts.append(f"## unlazy {name}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"


def numbers_of_today() -> str:
    """Return the numbers of claims, tasks and learners, for the first page."""
    kinds = (
        ("runnable claims", registry.claims),
        ("tasks", registry.tasks),
        ("learners", registry.learners),
        ("kernels", registry.kernels),
    )
    return ", ".join(f"{len(of())} {name}" for name, of in kinds)


def papers_table() -> str:
    """Return one row per paper: its name, what is cited, and its verdicts."""
    readme = _script("readme")
    found = readme.verdicts()
    lines = ["| paper | citation | verdicts |", "|---|---|---|"]
    for paper in papers():
        best = {v["id"]: v["verdict"] for v in found if v["id"].startswith(f"{paper}/")}
        counts = Counter(MARKS[verdict] for verdict in best.values())
        told = ", ".join(f"{mark} ({count})" for mark, count in counts.most_common())
        lines.append(f"| [`{paper}`]({paper}.md) | {readme.citations()[paper]} | {told} |")
    return "\n".join(lines)


def write(docs: Path) -> None:
    """Write all generated pages into the folder of the documentation."""
    for name in ("papers", "interface", "figures"):
        shutil.rmtree(docs / name, ignore_errors=True)
        (docs / name).mkdir()
    for path in (ROOT / "results" / "figures").glob("*.png"):
        shutil.copy(path, docs / "figures")
    for paper in papers():
        (docs / "papers" / f"{paper}.md").write_text(paper_page(paper), encoding="utf-8")
        (docs / "papers" / f"{author_name(paper)}.md").write_text(
            author_page(paper), encoding="utf-8"
        )
    listed = "\n".join(papers())
    for_authors = "\n".join(map(author_name, papers()))
    (docs / "papers" / "index.md").write_text(
        f"# Papers\n\n{papers_table()}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n\n"
        "Pages for the authors: what was run, what agrees, what could not be decided, and the "
        f"questions that only they can answer.\n\n```{{toctree}}\n{for_authors}\n```\n",
        encoding="utf-8",
    )
    pages = interface()
    for name, text in pages.items():
        (docs / "interface" / f"{name}.md").write_text(text, encoding="utf-8")
    (docs / "interface" / "commands.md").write_text(commands(), encoding="utf-8")
    listed = "\n".join(["commands", *pages])
    head = (
        "# Commands and API\n\n`import unlazy` provides all names on these pages. Registered by "
        f"name: {numbers_of_today()}."
    )
    (docs / "interface" / "index.md").write_text(
        f"{head}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n", encoding="utf-8"
    )


if __name__ == "__main__":
    print(json.dumps([*papers(), *interface()]))
