"""Bring the texts of claims in results/ up to date: `python scripts/refresh_texts.py`.

Statement, conditions, control, deviations and history are prose of the claims; editing them needs
no new run. This script copies the present prose into results/*.json. Measured values, verdicts,
criteria and seeds are not touched: an entry whose criteria or number of conditions differ is left
as it is, and named.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from unlazy.lab.claims import Claim, NotRun
from unlazy.lab.registry import claims, not_run

RESULTS = Path(__file__).parents[1] / "results"


def refreshed(entry: dict[str, Any], claim: Claim) -> dict[str, Any]:
    """Return an entry with the present texts of its claim."""
    conditions = [each.text for each in claim.conditions]
    older = not claim.exact and entry["seeds"][0] < claim.first_seed
    if older or entry["rule"] != claim.rule or len(entry["hypotheses"]) != len(conditions):
        print(f"{entry['id']}: its criteria, conditions or seeds changed; left as it is.")
        return entry
    reason = entry["reason"]
    for old, new in zip(entry["hypotheses"], conditions, strict=True):
        reason = reason.replace(old["condition"], new)
    return entry | {
        "where": claim.where,
        "statement": claim.statement,
        "reason": reason,
        "hypotheses": [
            old | {"condition": new}
            for old, new in zip(entry["hypotheses"], conditions, strict=True)
        ],
        "control": entry["control"] | {"what": claim.control.what}
        if entry["control"] and claim.control
        else entry["control"],
        "deviations": list(claim.deviations),
        "history": [dataclasses.asdict(each) for each in claim.history],
    }


def main() -> None:
    """Rewrite all files of verdicts."""
    known: dict[str, Claim | NotRun] = {**not_run(), **claims()}
    for path in sorted(RESULTS.glob("*-*.json")) + sorted((RESULTS / "null").glob("*.json")):
        entries = json.loads(path.read_text(encoding="utf-8"))
        new = []
        for entry in entries:
            claim = known.get(entry["id"].removesuffix(" (null)"))
            if isinstance(claim, Claim) and entry["verdict"] != "not run":
                entry = entry if entry["id"] != claim.id else refreshed(entry, claim)
            elif isinstance(claim, NotRun):
                entry |= {"where": claim.where, "statement": claim.statement}
                entry |= {"reason": claim.reason}
            new.append(entry)
        text = json.dumps(new, indent=2, ensure_ascii=False) + "\n"
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: refreshed")


if __name__ == "__main__":
    main()
