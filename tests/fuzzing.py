"""Damaged and hostile inputs for everything that is read: the result is valid or one of our errors,
and no code is run.

Each target takes inputs drawn by Hypothesis. `tests/test_fuzz.py` runs a few hundred inputs, `make
fuzz` a hundred thousand.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import os
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toys import hand_record, toy_trial
from unlazy.cli.common import integers
from unlazy.cli.main import main
from unlazy.core.errors import BadInput, UnlazyError
from unlazy.lab.costs import Cost
from unlazy.lab.engines.pools import messages
from unlazy.lab.engines.pools.slurm import resources_of
from unlazy.lab.maintenance import check, compare, merge
from unlazy.lab.rebuilding import rebuilt
from unlazy.lab.registry import claims, family_of, learner_of, load_file
from unlazy.lab.store import Run, Store
from unlazy.lab.trials import Failure
from unlazy.report.entries import found_in
from unlazy.studies.claim import claim_study
from unlazy.studies.scaling import places_of
from unlazy.tasks.images.readers import read_idx, read_npz
from unlazy.tasks.tables.files import read_table
from unlazy.theory.diagnosis import diagnose_file

#: A file that would be created if any input were executed.
MARK = Path(tempfile.gettempdir()) / f"unlazy-fuzz-{os.getpid()}"
HOSTILE = (
    f"__import__('pathlib').Path({str(MARK)!r}).touch()",
    f"cposix\nsystem\n(S'touch {MARK}'\ntR.",
    "<script>alert(1)</script>",
    "[bold]",
    "\x00",
    "../../etc/passwd",
    "NaN",
    "1e999",
    "-1",
    "99999999999999999999",
    "'; DROP TABLE records; --",
)
words = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12), st.integers().map(str))
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=0, max_size=6), st.booleans()),
    min_size=1,
    max_size=4,
)
documents = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)


def edited(data: bytes, changes) -> bytes:
    """Overwrite, insert or cut off some bytes."""
    for place, new, insert in changes:
        at = int(place * (len(data) + 1))
        data = data[:at] if not new else data[:at] + new + data[at if insert else at + len(new) :]
    return data


@functools.cache
def folder() -> Path:
    """Return a temporary folder of this process."""
    found = tempfile.TemporaryDirectory()
    _kept.append(found)
    return Path(found.name)


_kept: list[tempfile.TemporaryDirectory] = []


@functools.cache
def whole_store() -> bytes:
    """Return a small store with every kind of row."""
    path = folder() / "whole.sqlite"
    with Store(path) as store:
        for seed in range(3):
            key = hashlib.sha256(str(seed).encode()).hexdigest()[:32]
            store.add(
                hand_record(
                    key,
                    seed=seed,
                    loss=(1.0, float("nan")),
                    arrays={"w": np.arange(4.0)},
                    details={"x": 1},
                )
            )
            store.add(hand_record(key, fingerprint="g", seed=seed, loss=2.0, created="2027"))
        store.add_fingerprints({name: {"code": {"unlazy.core.random": name}} for name in "fg"})
        store.register_rules({"c/1": "x > 1"})
        store.add_run(
            Run("claim", "shi2022/table1", "smoke", 10, 2, {"Arm": ["a"]}, "2026", {"look": 0})
        )
        store.add_run(
            Run("contest", "t", "unlazy compare t", 10, 2, {"a": ["a"]}, "2026", {"task": "t"})
        )
        store.add_failure(Failure("f", {"seed": 1}, "why", {"unlazy": "0"}, "2026"))
        store.add_costs([Cost("k", 1.0, 2.0)])
    return path.read_bytes()


def read_all(path: Path) -> None:
    """Read everything from a store."""
    with Store(path, read_only=True) as store:
        for read in (
            lambda: list(store.records(arrays=True)),
            store.runs,
            store.failures,
            store.costs,
            store.rules,
            lambda: found_in(store),
            lambda: compare(store),
            lambda: store.fingerprint("f"),
            lambda: store.find([toy_trial()], arrays=True, reuse_older=True),
        ):
            with contextlib.suppress(UnlazyError):
                read()


def store_file(changes) -> None:
    """Read a store with changed bytes."""
    path = folder() / "damaged.sqlite"
    for extra in ("", "-wal", "-shm"):
        Path(f"{path}{extra}").unlink(missing_ok=True)
    path.write_bytes(edited(whole_store(), changes))
    with contextlib.suppress(UnlazyError):
        read_all(path)
    with contextlib.suppress(UnlazyError):
        check(path)


COLUMNS = {
    "records": (
        *("id", "key", "fingerprint", "trial", "status", "steps", "names", "measurements"),
        *("details", "seconds", "created", "checksum"),
    ),
    "fingerprints": ("id", "content"),
    "arrays": ("name", "dtype", "shape", "data"),
    "provenance": ("content",),
    "runs": ("kind", "name", "setting", "first_seed", "seeds", "arms", "created", "outcome"),
    "rules": ("claim", "rule", "registered"),
    "failures": ("id", "trial", "reason", "created"),
    "costs": ("kind", "work", "seconds"),
}
places = st.sampled_from(
    [(table, column) for table, columns in COLUMNS.items() for column in columns]
)
values = st.one_of(
    st.binary(max_size=40),
    words,
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    documents.map(lambda d: json.dumps(d)),
)


def store_row(place, value) -> None:
    """Read an intact store in which one column has another value."""
    path = folder() / "rows.sqlite"
    for extra in ("", "-wal", "-shm"):
        Path(f"{path}{extra}").unlink(missing_ok=True)
    path.write_bytes(whole_store())
    db = sqlite3.connect(path)
    with contextlib.suppress(sqlite3.Error):
        table, column = place
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()
    db.close()
    read_all(path)
    with contextlib.suppress(UnlazyError):
        check(path)
    target = folder() / "target.sqlite"
    with contextlib.suppress(UnlazyError), Store(target) as store:
        merge(store, [path])


@functools.cache
def whole_answer() -> bytes:
    """Return a file of records."""
    record = hand_record("a", loss=(1.0, 2.0), arrays={"w": np.arange(6.0).reshape(2, 3)})
    return messages.written(
        messages.Reply(
            (record,), (Failure("b", {}, "why", {}, "2026"),), "", None, (1, 0.5), "host"
        )
    )


def record_file(changes, signed) -> None:
    """Read a changed file of records, with a valid checksum as in an attack."""
    data = edited(whole_answer(), changes)
    if signed and len(data) > 40:
        data = messages.MAGIC + hashlib.sha256(data[40:]).digest() + data[40:]
    with contextlib.suppress(BadInput):
        messages.read(data)


def table_file(lines, changes) -> None:
    """Read a text dataset."""
    path = folder() / "table.csv"
    path.write_bytes(
        edited("\n".join(",".join(row) for row in lines).encode("utf-8", "surrogatepass"), changes)
    )
    for read in (
        lambda: diagnose_file(path, "y"),
        lambda: read_table(path, "y"),
        lambda: read_table(path, None),
    ):
        with contextlib.suppress(BadInput):
            read()


@functools.cache
def whole_data(kind: str) -> bytes:
    """Return a small dataset in a binary format."""
    path = folder() / f"whole{kind}"
    x, y = np.arange(24, dtype=np.uint8).reshape(3, 8), np.array([0, 1, 0])
    if kind == ".npz":
        np.savez(path, X=x, y=y, x_train=x.reshape(3, 2, 4, 1), y_train=y)
    elif kind == ".csv.gz":
        path.write_bytes(gzip.compress(b"x,y\n1,0\n2,1\n3,0\n"))
    elif kind == ".idx":
        path.write_bytes(b"\0\0\x08\x02" + np.array([3, 8], ">i4").tobytes() + x.tobytes())
    else:
        pyarrow.parquet.write_table(pyarrow.table({"x": x[:, 0], "y": y}), path)
    return path.read_bytes()


def data_file(kind, changes) -> None:
    """Read a changed dataset in a binary format."""
    path = folder() / f"data{kind}"
    path.write_bytes(edited(whole_data(kind), changes))
    for read in (
        (read_idx, read_npz, lambda path: read_table(path, "y"))
        if kind != ".parquet"
        else (lambda path: read_table(path, "y"),)
    ):
        with contextlib.suppress(BadInput):
            read(path)


kinds = st.sampled_from([".npz", ".idx", ".parquet", ".csv.gz"])
lines = st.lists(
    st.lists(st.one_of(st.sampled_from(["y", "x", "0", "1", "-1"]), words), min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)
COMMANDS = (
    "list",
    "show",
    "rules",
    "export",
    "report",
    "circuit-check",
    "new",
    "compare",
    "scaling",
)
COMMANDS += (
    "store",
    "check",
    "gc",
    "merge",
    "diff",
    "rerun",
    "audit",
    "data",
    "cite",
    "completion",
)
OPTIONS = (
    "--store",
    "--scale",
    "--learner",
    "--n",
    "--set",
    "--vary",
    "--target",
    "--dry-run",
    "-h",
)
OPTIONS += ("--fresh", "--reuse-older", "--engine", "--slurm", "--memory", "--workers")
arguments = st.lists(
    st.one_of(st.sampled_from(COMMANDS), st.sampled_from(OPTIONS), words), max_size=5
)


def command_line(arguments) -> None:
    """Run a command line without long computations."""
    with contextlib.chdir(folder()):
        found = CliRunner().invoke(
            main, arguments, env={"UNLAZY_STORE": str(folder() / "none.sqlite")}
        )
    assert found.exit_code in (0, 1, 2) and isinstance(found.exception, (SystemExit, type(None))), (
        arguments,
        found.exception,
    )


BROKEN = ["class A(:", "(" * 300, "x = " + "[" * 200, "import nothing_at_all", "1/0", "def f():"]
texts = st.one_of(words, st.binary(max_size=60), st.sampled_from(BROKEN))


def plug_in(text, name) -> None:
    """Load a plug-in file and a name in it; invalid code must not crash."""
    if isinstance(text, str) and ("touch" in text or "system" in text):
        text = repr(text)
    path = folder() / "own.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    for load in (
        lambda: load_file(path),
        lambda: family_of(f"{path}:{name}"),
        lambda: learner_of(name),
        lambda: family_of(name),
    ):
        with contextlib.suppress(BadInput):
            load()


@functools.cache
def described() -> tuple[str, dict]:
    """Return the key and the description of a trial."""
    study = claim_study(claims()["shi2022/table1"], "smoke", seeds=1, first_seed=10)
    trials = [trial for arm in study.trials["claim"].values() for trial in arm]
    trial = min(trials, key=lambda each: each.work)
    return trial.key, json.loads(json.dumps(trial.describe()))


def description(path, value) -> None:
    """Rebuild a trial from a description with one change."""
    key, told = described()
    told = json.loads(json.dumps(told))
    here = told
    for step in path:
        inner = list(here.items() if isinstance(here, dict) else enumerate(here))
        name, below = inner[step % len(inner)]
        if not isinstance(below, (dict, list)) or not below or step % 3 == 0:
            here[name] = value
            break
        here = below
    with contextlib.suppress(BadInput):
        assert rebuilt(key, told).key == key


def option_text(text) -> None:
    """Parse values of options."""
    family = toy_trial().family
    for read in (
        lambda: resources_of(text),
        lambda: integers("--n", text),
        lambda: places_of(family, text, "task"),
        lambda: places_of(family, f"d={text}", "task"),
    ):
        with contextlib.suppress(BadInput):
            read()


#: Targets, their inputs, and their fractions of all inputs.
TARGETS = {
    "store files": (store_file, {"changes": edits}, 0.2),
    "store rows": (store_row, {"place": places, "value": values}, 0.1),
    "record files": (record_file, {"changes": edits, "signed": st.booleans()}, 0.2),
    "tables": (table_file, {"lines": lines, "changes": edits}, 0.1),
    "data files": (data_file, {"kind": kinds, "changes": edits}, 0.1),
    "command lines": (command_line, {"arguments": arguments}, 0.05),
    "plug-ins": (plug_in, {"text": texts, "name": words}, 0.1),
    "descriptions": (
        description,
        {"path": st.lists(st.integers(0, 20), min_size=1, max_size=4), "value": documents},
        0.1,
    ),
    "options": (option_text, {"text": words}, 0.05),
}


def fuzz(name: str, inputs: int, *, seeded: bool) -> None:
    """Run a target on `count` inputs; a failing input is minimized and shown."""
    target, strategies, _ = TARGETS[name]
    quiet = settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        derandomize=seeded,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    quiet(given(**strategies)(target))()
    assert not MARK.exists(), "code from an input was run"
