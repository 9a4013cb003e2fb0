"""`unlazy completion`."""

from __future__ import annotations

import click

#: The startup file of each shell.
STARTS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/unlazy.fish"}


@click.command()
@click.argument("shell", type=click.Choice(list(STARTS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    Add it to the startup file of your shell, which the command names.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(
        f"# Add this to {STARTS[shell]}, or: unlazy completion {shell} >> {STARTS[shell]}", err=True
    )
    click.echo(kind(context.find_root().command, {}, "unlazy", "_UNLAZY_COMPLETE").source())
