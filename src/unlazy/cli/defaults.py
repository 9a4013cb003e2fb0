"""Configuration files, and the options `--quiet` and `--verbose` of every command.

Precedence: command line, environment, `unlazy.toml` in the working folder, `config.toml` in the
user's configuration folder. Keys are the long names of options. A table with the name of a command
applies to that command only.

The file of the working folder may be somebody else's: files of code, paths outside of the folder
and engines are accepted in the user's own file and on the command line only.
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
#: Environment variables that take precedence over configuration files, by option.
ENVIRONMENT = {"store": "UNLAZY_STORE"}
#: Options that a file in the working folder cannot set, since they start processes elsewhere.
TRUSTED_ONLY = ("engine", "slurm")
#: Keys of both options in the context.
QUIET, VERBOSE = "quiet", "verbose"


def user_file() -> Path:
    """Return the path of the user's configuration file."""
    import platformdirs

    return Path(platformdirs.user_config_dir("unlazy")) / "config.toml"


def files() -> list[Path]:
    """Return the existing configuration files, highest precedence last."""
    return [path for path in (user_file(), Path.cwd() / LOCAL) if path.is_file()]


def read(path: Path) -> dict[str, Any]:
    """Return the content of a configuration file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} cannot be read as TOML: {error}") from None


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by their long names."""
    found: dict[str, click.Option] = {}
    for option in command.params:
        if isinstance(option, click.Option):
            found |= {
                name.removeprefix("--"): option for name in option.opts if name.startswith("--")
            }
    return found


def default_map(commands: Mapping[str, click.Command]) -> dict[str, dict[str, Any]]:
    """Return the configured option values of each command, in click's format.

    Unknown keys raise `BadInput`.
    """
    known = {name: options_of(command) for name, command in commands.items()}
    every = {option for options in known.values() for option in options}
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}

    def put(path: Path, command: str, key: str, value: Any) -> None:
        option = known[command][key]
        if path != user_file():
            _refuse_untrusted(path, option, key, value)
        _put(found[command], option, key, value)

    for path in files():
        for key, value in read(path).items():
            if isinstance(value, dict):
                if key not in commands:
                    raise BadInput(f"{path}: {unknown('command', key, commands)}")
                for option, inner in value.items():
                    if option not in known[key]:
                        raise BadInput(f"{path}, [{key}]: {unknown('option', option, known[key])}")
                    put(path, key, option, inner)
            elif key not in every:
                raise BadInput(f"{path}: {unknown('option', key, every)}")
            else:
                for name, options in known.items():
                    if key in options:
                        put(path, name, key, value)
    return found


def _refuse_untrusted(path: Path, option: click.Option, key: str, value: Any) -> None:
    """Raise `BadInput` if a file in the working folder sets what could harm its user."""
    texts = [str(each) for each in (value if isinstance(value, list) else [value])]
    folder = path.parent.resolve()
    if key in TRUSTED_ONLY:
        why = "an engine"
    elif any(".py" in text for text in texts):
        why = "a file of code"
    elif isinstance(option.type, click.Path) and not all(
        (folder / Path(text).expanduser()).resolve().is_relative_to(folder) for text in texts
    ):
        why = "a path outside of this folder"
    else:
        return
    raise BadInput(
        f"{path}: `{key}` names {why}, which is accepted only in {user_file()} or on the command "
        "line: a folder that somebody else made must not run code or write files elsewhere."
    )


def _put(defaults: dict[str, Any], option: click.Option, key: str, value: Any) -> None:
    if os.environ.get(ENVIRONMENT.get(key, ""), ""):
        return
    path = isinstance(option.type, click.Path) and isinstance(value, str)
    assert option.name is not None
    defaults[option.name] = str(Path(value).expanduser()) if path else value


def loudness() -> Iterable[click.Option]:
    """Return the options --quiet and --verbose."""

    def keep(name: str) -> Callable[..., None]:
        def callback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
            context.meta[f"unlazy.{name}"] = value

        return callback

    common: dict[str, Any] = {"is_flag": True, "expose_value": False}
    return (
        click.Option(
            ["-q", "--quiet"],
            help="Print only errors and requested JSON.",
            callback=keep(QUIET),
            **common,
        ),
        click.Option(
            ["-v", "--verbose"],
            help="Show details; on errors, the traceback.",
            callback=keep(VERBOSE),
            **common,
        ),
    )


def is_set(name: str) -> bool:
    """Return whether --quiet or --verbose was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"unlazy.{name}", False))


@click.command()
def config() -> None:
    """Show configuration files and effective settings."""
    from unlazy.cli.common import default_store

    click.echo(f"User: {user_file()}{'' if user_file().is_file() else ' (not found)'}")
    local = Path.cwd() / LOCAL
    click.echo(f"Folder: {local}{'' if local.is_file() else ' (not found)'}")
    click.echo(f"Store: {default_store()}")
    for path in files():
        click.echo(f"\n{path}:")
        for key, value in read(path).items():
            click.echo(f"  {key} = {value!r}")
