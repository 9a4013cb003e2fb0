"""`unlazy cite`."""

from __future__ import annotations

import click


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID...]")
def cite(ids: tuple[str, ...]) -> None:
    """Print BibTeX of the papers of these claims, tasks, learners or papers, and of unlazy
    itself.
    """
    from unlazy.report.citations import entries

    click.echo("\n\n".join(entries(ids)))
