"""Finished pieces of long work in a file, one a line: what was done before a stop is not done
again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Raised whenever estimators or contests change what they compute: pieces made before are then made
#: anew.
FORM = 3


class Journal:
    """Pieces by name. Without a file they are kept in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.pieces: dict[str, Any] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    name, piece = json.loads(line)
                except ValueError:
                    continue  # the last line of a run that was killed while it wrote
                self.pieces[name] = piece

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """A piece by name: read, or made and written down at once."""
        if name not in self.pieces:
            piece = make()
            self.pieces[name] = piece
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([name, piece]) + "\n")
        return self.pieces[name]
