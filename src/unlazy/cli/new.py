"""`unlazy new`: template files for tasks, learners and claims."""

from __future__ import annotations

import importlib.resources
import keyword
import re
from pathlib import Path

import click

from unlazy.core.errors import require

#: The command that runs each template.
NEXT = {
    "task": "unlazy compare ./{file}:{Name} --learner linear --learner ntk --n 100,1000",
    "learner": "unlazy compare glasgow2023/task --learner ./{file}:{Name} "
    "--learner linear --n 100,1000",
    "claim": "unlazy reproduce ./{file}:CLAIM --scale smoke",
}


@click.command()
@click.argument("kind", type=click.Choice(list(NEXT)))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Create a template for a task, learner or claim.

    Writes the runnable file NAME.py to the working folder.
    """
    path, command = start(kind, name, Path.cwd())
    click.echo(f"{path.name} written. Run it:\n\n    {command}\n")


def start(kind: str, name: str, folder: Path) -> tuple[Path, str]:
    """Write the file; return its path and the command that runs it."""
    snake, camel = names_of(name)
    path = folder / f"{snake}.py"
    require(
        not path.exists(),
        f"{path.name} already exists.",
    )
    words = {"file": path.name, "name": snake, "Name": camel}
    text = (
        importlib.resources.files("unlazy.cli")
        .joinpath("templates", f"{kind}.py.txt")
        .read_text(encoding="utf-8")
    )
    path.write_text(re.sub(r"@(\w+)@", lambda found: words[found[1]], text), encoding="utf-8")
    return path, NEXT[kind].format(**words)


def names_of(name: str) -> tuple[str, str]:
    """Return a name as file name and class name, such as sparse_parity and SparseParity."""
    usable = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and not keyword.iskeyword(
        name.lower()
    )
    require(
        usable,
        "A name consists of letters, digits and '_' and begins with a letter, such as "
        f"sparse_parity, got {name!r}.",
    )
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
    return snake, "".join(part.capitalize() for part in snake.split("_"))
