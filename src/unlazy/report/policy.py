"""Content security policies: a page runs its own scripts and no others, and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

_NONE = "'none'"


def policy(scripts: Iterable[str], connect: str = "") -> str:
    """Return the policy of a page with these scripts, which are named by their hashes.

    A script that a text of the page smuggles in has another hash and does not run. `connect`:
    addresses to which the page may open connections.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'"
        for each in scripts
    )
    allowed = f"; connect-src {connect}" if connect else ""
    return (
        f"default-src 'none'; script-src {hashes or _NONE}; "
        f"style-src 'unsafe-inline'; img-src data: blob:; font-src data:{allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
