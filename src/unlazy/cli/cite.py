"""`unlazy cite`."""

from __future__ import annotations

import click


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID...]")
def cite(ids: tuple[str, ...]) -> None:
    """Print BibTeX for claims, papers and unlazy.

    ID is a paper, or a claim, task or learner of a paper.
    """
    from unlazy.report.citations import entries

    click.echo("\n\n".join(entries(ids)))
