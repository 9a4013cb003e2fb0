"""The command `unlazy` and its subcommands.

JAX is imported on demand, so that `--help` is fast.
"""

from __future__ import annotations

import difflib
from typing import Any

import click

from unlazy import __version__
from unlazy.cli.audit import audit
from unlazy.cli.circuit_check import circuit_check
from unlazy.cli.cite import cite
from unlazy.cli.compare import compare
from unlazy.cli.completion import completion
from unlazy.cli.data import data
from unlazy.cli.defaults import VERBOSE, config, default_map, loudness
from unlazy.cli.demo import demo
from unlazy.cli.doctor import doctor
from unlazy.cli.export import export
from unlazy.cli.list import list_entries
from unlazy.cli.new import new
from unlazy.cli.play import play
from unlazy.cli.readings import readings
from unlazy.cli.report import report
from unlazy.cli.reproduce import reproduce
from unlazy.cli.rerun import rerun
from unlazy.cli.rules import rules
from unlazy.cli.scaling import scaling
from unlazy.cli.show import show
from unlazy.cli.store import store
from unlazy.cli.uci import uci
from unlazy.core.errors import UnlazyError, printable

#: Former words of the command line, accepted with a warning for one release.
RENAMED = {
    "tables": "uci",
    "--contender": "--method",
    "--entrant": "--method",
    "--least-rows": "--min-rows",
    "--most": "--max-n",
    "--most-rows": "--max-rows",
    "--most-seeds": "--max-seeds",
    "--null": "--shuffle-labels",
}
#: Subcommands by purpose, in the order of `--help`.
GROUPS = {
    "Experiments": (reproduce, readings, compare, scaling, audit, circuit_check, uci, demo, play),
    "Results": (list_entries, rules, show, report, export, cite, store, rerun),
    "Setup": (new, data, doctor, config, completion),
}
#: Commands that run with an invalid configuration file, so that it can be repaired.
REPAIRS = ("config", "completion")


class _Refused(click.ClickException):
    """Error message of one sentence; exit status 2."""

    exit_code = 2


def _present_word(word: str, *, first: bool) -> str:
    """Return the present form of a command or option, with a warning if it was renamed."""
    name, sign, value = word.partition("=")
    if name not in RENAMED or (name == "tables" and not first):
        return word
    click.echo(f"Warning: {name} is now called {RENAMED[name]}.", err=True)
    return f"{RENAMED[name]}{sign}{value}"


class _Commands(click.Group):
    """Command group with grouped help, short error messages and suggestions."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for purpose, commands in GROUPS.items():
            with formatter.section(purpose):
                for command in commands:
                    help_text = command.get_short_help_str(limit=200).rstrip(".")
                    formatter.write(f"  {command.name or '':{width}}  {help_text}\n")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UnlazyError as error:
            if ctx.meta.get(f"unlazy.{VERBOSE}"):
                raise
            raise _Refused(printable(str(error))) from error

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if any("\0" in word for word in args):
            raise _Refused("Arguments must not contain null characters.")
        args = [_present_word(word, first=index == 0) for index, word in enumerate(args)]
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            near = difflib.get_close_matches(args[0], known, n=1, cutoff=0.3)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
            raise _Refused(f"There is no command '{args[0]}'. {hint}")
        if args[0] not in REPAIRS and not ctx.resilient_parsing:
            ctx.default_map = default_map(self.commands)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Measure when networks trained by gradient descent learn features, and when that beats fixed
    features.
    """


for command in (command for commands in GROUPS.values() for command in commands):
    command.params.extend(loudness())
    main.add_command(command)
