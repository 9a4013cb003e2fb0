"""Pages for the authors of the papers: what was run, what agrees, what could not be decided, the
questions that only they can answer, and how to answer them.

`site_pages.write` adds one page per paper, made from results/, the errata, the questions and
`papers/NAME/answers.md`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from unlazy.lab import registry
from unlazy.lab.claims import Claim
from unlazy.lab.judging import STANDING
from unlazy.lab.paper_files import answers
from unlazy.lab.paper_index import index
from unlazy.report.formulas import plain
from unlazy.report.labels import MARKS

#: Outcomes that neither confirm nor refute a statement of the paper.
OPEN = ("undecided", "assumptions not met", "not testable at finite size", "not run")


def author_page(paper: str, title: str, readme: ModuleType) -> str:
    """Return the page for the authors of a paper; `readme` is scripts/readme.py."""
    module = importlib.import_module(f"unlazy.papers.{paper}")
    found = [v for v in readme.verdicts() if v["id"].startswith(f"{paper}/")]
    largest = list({v["id"]: v for v in found}.values())
    groups = {
        "agrees": [v for v in largest if v["verdict"] in STANDING],
        "not decided": [v for v in largest if v["verdict"] in OPEN],
        "disagrees": [v for v in largest if v["verdict"] == "fails"],
        "own": [v for v in largest if v["verdict"] == "ours"],
    }
    parts = [
        f"# To the authors of “{title}”",
        f"*{module.CITATION}* All results are on [the page of the paper]({paper}.md).",
        f"## What was run\n\n{what_was_run(paper, module.EDITION, largest)}",
        f"## What agrees\n\n{verdicts(readme, groups['agrees'])}",
        f"## What could not be decided\n\n{verdicts(readme, groups['not decided'], reasons=True)}",
        f"## What disagrees\n\n{verdicts(readme, groups['disagrees'], reasons=True)}",
    ]
    if groups["own"]:
        parts.append(
            "## Questions of ours\n\nNot assertions of the paper.\n\n"
            + verdicts(readme, groups["own"])
        )
    parts += [
        f"## Questions to you\n\n{questions(paper, readme)}",
        f"## How to answer\n\n{how_to_answer(paper)}",
        f"## Answers so far\n\n{answered(paper)}",
    ]
    return "\n\n".join(parts) + "\n"


def what_was_run(paper: str, edition: str, found: Sequence[dict[str, Any]]) -> str:
    """Return the edition, the numbers of claims and statements, and the command."""
    entries = index([paper])
    tested = sum(bool(entry.rows) for entry in entries)
    ran = sum(v["verdict"] != "not run" for v in found)
    return (
        f"{edition} {ran} claims were run, each at the largest scale at which results are stored; "
        f"they test {tested} of {len(entries)} statements in the [index]({paper}.md#index). Each "
        "claim has acceptance criteria that were fixed before its held-out seeds were run, and a "
        "negative control on which they must fail ([how verdicts are computed](../verdicts.md))."
        f"\n\n```bash\nunlazy reproduce '{paper}/*' --controls\n```"
    )


def verdicts(readme: ModuleType, found: Sequence[dict[str, Any]], *, reasons: bool = False) -> str:
    """Return one line per claim: place in the paper, verdict, and the reason if asked."""
    if not found:
        return "Nothing."
    return "\n".join(_line(readme, v, reasons) for v in found)


def _line(readme: ModuleType, v: dict[str, Any], reasons: bool) -> str:
    if v["verdict"] == "not run":
        return f"- `{v['id']}` ({v['where']}), not run: {readme.not_run_reason(v)}"
    name = f"[`{v['id']}`](../ledger.md#{readme.details_anchor(v)})"
    reason = f": {plain(readme.labeled_reason(v))}" if reasons and v["reason"] else ""
    return f"- {name} ({v['where']}), {v['scale']} scale, {MARKS[v['verdict']]}{reason}"


def questions(paper: str, readme: ModuleType) -> str:
    """Return what only the authors can answer: settings, printed results, and errata."""
    asked = [
        f"- [{q.id}](../errata.md#{readme.anchor(q.id)}), {q.where}: {q.question}"
        for q in readme.of_paper(paper, registry.discrepancies())
    ]
    asked += [
        f"- [{e.id}](../errata.md#{readme.anchor(e.id)}), {e.where}: we read “{e.printed}”. Is "
        f"this printed, and is our correction right? {e.correction}"
        for e in readme.of_paper(paper, registry.errata())
    ]
    asked += [
        f"- `{claim.id}`, {claim.where}: which settings were used? The text leaves open what the "
        f"{len(claim.readings)} readings that we tried differ in; “{claim.judged.name}” was judged."
        for claim in _claims(paper)
        if claim.readings
    ]
    return "\n".join(asked) or "None."


def _claims(paper: str) -> list[Claim]:
    return [claim for name, claim in registry.claims().items() if name.startswith(f"{paper}/")]


def how_to_answer(paper: str) -> str:
    """Return how to answer, and what becomes of an answer."""
    return (
        f"Add a section to `src/unlazy/papers/{paper}/answers.md`, named by the id of the claim, "
        "erratum or question, or send its text in an issue:\n\n"
        f"```text\n## {paper}/ID\n\n- DATE, NAME: TEXT\n```\n\n"
        "Answers are shown here, in the [results](../ledger.md) and in the [errata](../errata.md). "
        "An erratum that is answered to be ours is withdrawn, and a setting that is named becomes "
        "a reading of the claim, judged on seeds that no run has used."
    )


def answered(paper: str) -> str:
    """Return the answers of the authors of a paper."""
    return (
        "\n".join(
            f"- `{each.about}` ({each.author}, {each.date}): {each.text}" for each in answers(paper)
        )
        or "None."
    )
