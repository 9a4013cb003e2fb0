"""Defaults of one's own, from a file; `unlazy config` shows them. `--quiet` and `--verbose`, which
every command has.

What is given on the command line comes first, then the environment, then `unlazy.toml` in the
working folder, then `config.toml` in the user's configuration folder. Keys are the long names of
options; a table with the name of a command holds for that command alone.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from unlazy.core.errors import BadInput, unknown

LOCAL = "unlazy.toml"
#: Options that an environment variable sets too, which then comes before the file.
ENVIRONMENT = {"store": "UNLAZY_STORE"}
#: Under these names the loudness of a run is kept with its context.
QUIET, VERBOSE = "quiet", "verbose"


def user_file() -> Path:
    """The user's own file."""
    import platformdirs

    return Path(platformdirs.user_config_dir("unlazy")) / "config.toml"


def files() -> list[Path]:
    """The files that are there, the strongest last."""
    return [path for path in (user_file(), Path.cwd() / LOCAL) if path.is_file()]


def read(path: Path) -> dict[str, Any]:
    """A file of defaults."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} cannot be read as TOML: {error}") from None


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names."""
    found: dict[str, click.Option] = {}
    for option in command.params:
        if isinstance(option, click.Option):
            found |= {
                name.removeprefix("--"): option for name in option.opts if name.startswith("--")
            }
    return found


def default_map(commands: Mapping[str, click.Command]) -> dict[str, dict[str, Any]]:
    """For each command, the defaults of its options, as click wants them.

    Keys that no command knows are refused.
    """
    known = {name: options_of(command) for name, command in commands.items()}
    every = {option for options in known.values() for option in options}
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for path in files():
        for key, value in read(path).items():
            if isinstance(value, dict):
                if key not in commands:
                    raise BadInput(f"{path}: {unknown('command', key, commands)}")
                for option, inner in value.items():
                    if option not in known[key]:
                        raise BadInput(f"{path}, [{key}]: {unknown('option', option, known[key])}")
                    _put(found[key], known[key][option], option, inner)
            elif key not in every:
                raise BadInput(f"{path}: {unknown('option', key, every)}")
            else:
                for name, options in known.items():
                    if key in options:
                        _put(found[name], options[key], key, value)
    return found


def _put(defaults: dict[str, Any], option: click.Option, key: str, value: Any) -> None:
    if os.environ.get(ENVIRONMENT.get(key, ""), ""):
        return
    path = isinstance(option.type, click.Path) and isinstance(value, str)
    assert option.name is not None
    defaults[option.name] = str(Path(value).expanduser()) if path else value


def loudness() -> Iterable[click.Option]:
    """The two options that every command has."""

    def keep(name: str) -> Callable[..., None]:
        def callback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
            context.meta[f"unlazy.{name}"] = value

        return callback

    common: dict[str, Any] = {"is_flag": True, "expose_value": False}
    return (
        click.Option(
            ["-q", "--quiet"],
            help="Say nothing but errors, and what was asked for as JSON.",
            callback=keep(QUIET),
            **common,
        ),
        click.Option(
            ["-v", "--verbose"], help="Show all of an error.", callback=keep(VERBOSE), **common
        ),
    )


def is_set(name: str) -> bool:
    """Whether this run is quiet, or verbose."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"unlazy.{name}", False))


@click.command()
def config() -> None:
    """Show the files of defaults, and what they set."""
    from unlazy.cli.common import default_store

    click.echo(f"Your own file: {user_file()}{'' if user_file().is_file() else ' (not there)'}")
    local = Path.cwd() / LOCAL
    click.echo(f"Of this folder: {local}{'' if local.is_file() else ' (not there)'}")
    click.echo(f"Store: {default_store()}")
    for path in files():
        click.echo(f"\n{path}:")
        for key, value in read(path).items():
            click.echo(f"  {key} = {value!r}")
