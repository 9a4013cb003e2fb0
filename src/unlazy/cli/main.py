"""The command line. Nothing here imports JAX before it is needed, so that `--help` answers at once."""

from __future__ import annotations

import difflib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlazy import __version__
from unlazy.cli.new import new
from unlazy.core.errors import BadInput, UnlazyError
from unlazy.report.files import check_writable, replacing

if TYPE_CHECKING:
    from unlazy.lab.store import Store


class _Refused(click.ClickException):
    """An error of ours: one sentence, exit status 2."""

    exit_code = 2


class _Commands(click.Group):
    """A group that explains our errors and suggests the nearest command."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UnlazyError as error:
            raise _Refused(str(error)) from error

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            near = difflib.get_close_matches(args[0], known, n=1, cutoff=0.3)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."
            raise _Refused(f"There is no command '{args[0]}'. {hint}")
        return super().resolve_command(ctx, args)


def default_store() -> Path:
    """$UNLAZY_STORE, or a file in the user's data folder."""
    import platformdirs

    return Path(os.environ.get("UNLAZY_STORE") or Path(platformdirs.user_data_dir("unlazy")) / "store.sqlite")


_store = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    help="Store file [default: $UNLAZY_STORE or the user's data folder].",
)
_scale = click.option(
    "--scale",
    type=click.Choice(["smoke", "laptop", "paper"]),
    default="laptop",
    show_default=True,
    help="How large to run.",
)
_memory = click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    help="GiB that a running program may use [default: half of what is free, at most 2].",
)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Find out where gradient descent learns features, and so beats every method with fixed features."""


main.add_command(new)


@main.command("list")
@click.argument("kind", type=click.Choice(["claims", "tasks", "learners"]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_things(kind: str, as_json: bool) -> None:
    """List what there is."""
    from unlazy.core.naming import describe
    from unlazy.lab import registry
    from unlazy.report.tables import terminal

    if kind == "claims":
        found = [
            {"id": c.id, "kind": c.kind, "where": c.where, "statement": c.statement, "rule": c.rule} for c in registry.claims().values()
        ]
        shown = ["id", "kind", "where", "statement"]
    else:
        named = registry.tasks() if kind == "tasks" else registry.learners()
        found = [{"id": name, "what": entry.what, **describe(entry.thing)} for name, entry in named.items()]
        shown = ["id", "what"]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _console().print(terminal((shown, [[str(row[column]) for column in shown] for row in found])))


@main.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_scale
@click.option("--seeds", type=click.IntRange(min=1), help="Number of seeds [default: as the claim says].")
@click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    help="First seed [default: 10; seeds below were used to choose settings].",
)
@_store
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    help="Write the verdicts to this file ('-': standard output).",
)
@click.option("--strict", is_flag=True, help="Exit with status 1 unless every verdict is 'holds'.")
@click.option("--fresh", is_flag=True, help="Forget the records of these trials and run them anew.")
@_memory
def reproduce(
    ids: tuple[str, ...],
    scale: str,
    seeds: int | None,
    first_seed: int | None,
    store_path: Path | None,
    json_path: Path | None,
    strict: bool,
    fresh: bool,
    memory: float | None,
) -> None:
    """Run claims and judge them. ID may be a pattern such as 'shi2022/*'. What is in the store is not run again."""
    from unlazy.lab.registry import find_claims

    claims = find_claims(ids)
    if json_path is not None and str(json_path) != "-":
        check_writable(json_path)
    click.get_current_context().meta["machine_reads_output"] = str(json_path) == "-"
    from unlazy.lab.claims import FIRST_SEED
    from unlazy.lab.running import study
    from unlazy.lab.store import Store
    from unlazy.report.live import run_studies

    first = FIRST_SEED if first_seed is None else first_seed
    studies = [study(claim, scale, seeds=seeds, first_seed=first) for claim in claims]  # type: ignore[arg-type]
    with Store(store_path or default_store()) as store:
        verdicts = run_studies(studies, store, _console(), memory=memory, fresh=fresh)
    if json_path is not None:
        _write_json([verdict.to_json() for verdict in verdicts], json_path)
    if strict and any(verdict.outcome != "holds" for verdict in verdicts):
        sys.exit(1)


@main.command()
@click.argument("task", metavar="TASK")
@click.option("--learner", "names", multiple=True, metavar="NAME", help="A learner, again for each; 'unlazy list learners' names them.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a number of the task, such as d=100.")
@click.option("--n", "sizes", default="1000", show_default=True, metavar="N,N,...", help="Numbers of examples.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Number of seeds.")
@click.option("--first-seed", type=click.IntRange(min=0), default=10, show_default=True, help="First seed.")
@click.option("--budget", type=click.IntRange(min=1), default=24, show_default=True, help="Settings that each learner may try.")
@click.option("--test", type=click.IntRange(min=1), default=10_000, show_default=True, help="Number of test examples.")
@_store
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the outcome to this file ('-': standard output).")
@click.option("--figure", type=click.Path(path_type=Path), help="Write the learning curves to this file (.png, .pdf or .svg).")
@_memory
def compare(
    task: str,
    names: tuple[str, ...],
    changes: tuple[str, ...],
    sizes: str,
    seeds: int,
    first_seed: int,
    budget: int,
    test: int,
    store_path: Path | None,
    json_path: Path | None,
    figure: Path | None,
    memory: float | None,
) -> None:
    """Let learners compete on TASK: the same examples and the same tuning budget for each, and say who is ahead.

    What is in the store is not run again; a contest that was stopped goes on where it was.
    """
    if figure is not None and figure.suffix not in (".png", ".pdf", ".svg"):
        raise BadInput(f"A figure ends with .png, .pdf or .svg, but {figure.name!r} does not.")
    for path in (json_path if str(json_path) != "-" else None, figure):
        if path is not None:
            check_writable(path)
    click.get_current_context().meta["machine_reads_output"] = str(json_path) == "-"
    from unlazy.lab.contests import Contest
    from unlazy.lab.registry import family_of, learner_of
    from unlazy.lab.store import Store
    from unlazy.report.contests import print_outcome, save_curves
    from unlazy.report.live import run_contest

    if not names:
        raise BadInput("A contest needs learners: add --learner NAME once for each. `unlazy list learners` names them.")
    contest = Contest(
        family_of(task, changes),
        {name: learner_of(name) for name in names},
        _whole_numbers("--n", sizes),
        tuple(range(first_seed, first_seed + seeds)),
        budget=budget,
        test=test,
    )
    with Store(store_path or default_store()) as store:
        outcome = run_contest(contest, task, store, _console(), memory=memory)
    print_outcome(outcome, _console())
    if json_path is not None:
        words = ["unlazy", "compare", task, *(word for change in changes for word in ("--set", change))]
        words += [word for name in names for word in ("--learner", name)]
        words += ["--n", ",".join(map(str, contest.sizes)), "--seeds", str(seeds), "--first-seed", str(first_seed)]
        words += ["--budget", str(budget), "--test", str(test)]
        _write_json({"task": task, "set": list(changes), "command": shlex.join(words), **outcome.to_json()}, json_path)
    if figure is not None:
        save_curves(outcome, task, figure)
        _console().print(f"Figure written to {figure}", soft_wrap=True)


def _whole_numbers(name: str, text: str) -> tuple[int, ...]:
    """Numbers such as 1000,10000."""
    try:
        return tuple(sorted({int(part) for part in text.replace("_", "").split(",")}))
    except ValueError:
        raise BadInput(f"{name} takes whole numbers with commas between, such as 1000,10000, but is {text!r}.") from None


def _write_json(data: Any, path: Path) -> None:
    """Write to a file, or to standard output where the path is '-'."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if str(path) == "-":
        click.echo(text)
        return
    with replacing(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


@main.command()
@click.argument("claim", required=False, metavar="[ID]")
@click.option("--scale", type=click.Choice(["smoke", "laptop", "paper"]), help="Only runs of this scale.")
@_store
def show(claim: str | None, scale: str | None, store_path: Path | None) -> None:
    """Show verdicts from the store without running anything: all in short, or one claim (or pattern) in full."""
    from unlazy.lab.store import Store
    from unlazy.report.entries import entries
    from unlazy.report.tables import ledger, print_verdict, terminal

    console = _console()
    with Store(store_path or default_store(), read_only=True) as store:
        verdicts = [verdict for verdict, _ in entries(store, claim, scale)]
    if claim is None:
        console.print(terminal(ledger(verdicts)))
    else:
        for verdict in verdicts:
            print_verdict(verdict, console)


@main.command()
@_store
@click.option("--format", "kind", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="File to write [default: standard output].")
def export(store_path: Path | None, kind: str, out: Path | None) -> None:
    """Write every measurement in the store as one long table: a row for each trial, step and measure."""
    from unlazy.lab.store import Store
    from unlazy.report.exporting import rows, write_export

    if out is not None:
        check_writable(out)
    elif kind == "parquet":
        raise BadInput("Parquet is a binary format and needs a file: add --out FILE.")
    with Store(store_path or default_store(), read_only=True) as store:
        count = write_export(rows(store.records(), store.runs()), kind, out)  # type: ignore[arg-type]
    if out is not None:
        click.echo(f"{count} rows written to {out}", err=True)


@main.command()
@_store
@click.option("--out", type=click.Path(path_type=Path), default=Path("page.html"), show_default=True, help="Page to write.")
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the figures for print into this folder.",
)
@click.option("--scale", type=click.Choice(["smoke", "laptop", "paper"]), help="Only runs of this scale.")
def report(store_path: Path | None, out: Path, figures: Path | None, scale: str | None) -> None:
    """Write one HTML page, readable offline, with all verdicts in the store, curves and moving neurons."""
    from unlazy.lab.store import Store

    check_writable(out)
    with Store(store_path or default_store(), read_only=True) as store:
        _report(store, out, figures, scale)


def _report(store: Store, out: Path, figures: Path | None, scale: str | None) -> None:
    from unlazy.report.entries import entries
    from unlazy.report.figures import save_figures
    from unlazy.report.page import write_page

    with _console().status("Drawing"):
        shown = entries(store, scale=scale, arrays=True)
        write_page(shown, out)
        written = [path for verdict, records in shown if figures for path in save_figures(verdict, records, figures)]
    click.echo(f"Page written to {out.resolve()}: open it in a browser, no network is needed.")
    for path in written:
        click.echo(f"Figure written to {path}")


@main.command()
@click.argument("task")
@click.option("--learner", "learners", multiple=True, default=("sgd", "ntk"), show_default=True, help="Learner; may be given many times.")
@click.option("--vary", default="d=32..256", show_default=True, help="Dimensions: d=32..1024 (doublings) or d=16,24,32.")
@click.option("--target-error", type=float, default=0.05, show_default=True, help="Test error to be reached.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Number of seeds.")
@click.option("--first-seed", type=click.IntRange(min=0), help="First seed [default: 10].")
@_store
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write all numbers to this file ('-': standard output).")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("scaling.png"), show_default=True, help="Figure to write (.png, .pdf)."
)
def scaling(
    task: str,
    learners: tuple[str, ...],
    vary: str,
    target_error: float,
    seeds: int,
    first_seed: int | None,
    store_path: Path | None,
    json_path: Path | None,
    out: Path,
) -> None:
    """Measure how many examples learners need on TASK as its dimension grows, and fit the exponents."""
    click.get_current_context().meta["machine_reads_output"] = str(json_path) == "-"
    for path in (out, json_path):
        if path is not None and str(path) != "-":
            check_writable(path)
    from unlazy.lab.claims import FIRST_SEED
    from unlazy.lab.store import Store
    from unlazy.report.scaling_run import run_scaling

    first = FIRST_SEED if first_seed is None else first_seed
    with Store(store_path or default_store()) as store:
        found = run_scaling(task, learners, vary, target_error, range(first, first + seeds), store, out, _console())
    if json_path is not None:
        _write_json(found, json_path)


@main.command()
@_scale
@_store
@click.option("--out", type=click.Path(path_type=Path), default=Path("page.html"), show_default=True, help="Page to write.")
@_memory
def demo(scale: str, store_path: Path | None, out: Path, memory: float | None) -> None:
    """Reproduce Table 1 of shi2022 and write the page."""
    from unlazy.lab.registry import claims
    from unlazy.lab.running import study
    from unlazy.lab.store import Store
    from unlazy.report.live import run_studies

    check_writable(out)
    with Store(store_path or default_store()) as store:
        run_studies([study(claims()["shi2022/table1"], scale)], store, _console(), memory=memory, fresh=False)  # type: ignore[arg-type]
        _report(store, out, None, scale)


@main.command("circuit-check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Column of the labels; all others are inputs. Values are −1 and 1, or 0 and 1.")
def circuit_check(file: Path, target: str) -> None:
    """Predict whether layerwise learning will work on a binary data set (CSV with a header), and show the tree it would find."""
    from unlazy.theory.diagnosis import diagnose_file

    click.echo(str(diagnose_file(file, target)))


def _console() -> Any:
    """Where people read: standard output, or standard error while a machine reads standard output."""
    from rich.console import Console

    return Console(stderr=click.get_current_context().meta.get("machine_reads_output", False))
