"""`unlazy completion`."""

from __future__ import annotations

import click

#: Where each shell looks for what it reads at its start.
STARTS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/unlazy.fish"}


@click.command()
@click.argument("shell", type=click.Choice(list(STARTS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands and options of unlazy; put it into the file that the
    shell reads at its start.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(
        f"# Add this to {STARTS[shell]}, or: unlazy completion {shell} >> {STARTS[shell]}", err=True
    )
    click.echo(kind(context.find_root().command, {}, "unlazy", "_UNLAZY_COMPLETE").source())
