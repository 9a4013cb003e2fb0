"""Health checks of the installation: machine, versions, compiled programs, store, engines."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from unlazy.core.errors import UnlazyError
from unlazy.lab.engines.base import NullCallback
from unlazy.lab.engines.local import default_memory, program_cache
from unlazy.lab.maintenance import check
from unlazy.lab.provenance import provenance

#: Bytes that should be free where records and programs are written.
MIN_FREE_BYTES = 1 << 30


class HealthCheck(NamedTuple):
    """One health check: subject, finding, whether it is healthy, and whether an optional part is
    not installed.
    """

    what: str
    found: str
    healthy: bool = True
    optional: bool = False


def signs(store: Path, engine: str | None = None) -> Iterator[HealthCheck]:
    """Yield all health checks; with `engine`, one trial is run on it."""
    origin = provenance()
    memory = (
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        if hasattr(os, "sysconf")
        else 0.0
    )
    yield HealthCheck("machine", f"{platform.node()}, {origin['machine']}, {memory:.0f} GiB RAM")
    yield HealthCheck("JAX device", _device(origin["device"]))
    yield HealthCheck(
        "memory limit per compiled program",
        f"{default_memory() / 2**30:.1f} GiB",
        default_memory() >= 1 << 28,
    )
    yield HealthCheck(
        "versions",
        ", ".join(
            f"{name} {origin[name]}"
            for name in ("unlazy", "python", "jax", "numpy", "scipy", "scikit-learn")
        ),
    )
    yield HealthCheck("source hash", origin["source"])
    yield _cache()
    yield from _store(store)
    yield _extra("dask", "distributed")
    yield _extra("slurm", "submitit")
    yield _slurm()
    yield from _plugins()
    if engine is not None:
        yield _engine(engine, store)


def _device(name: str) -> str:
    """Return a device such as "cpu: cpu" in a word, if platform and kind are the same."""
    platform_name, _, kind = name.partition(": ")
    return platform_name.upper() if platform_name == kind else name


def _count(many: int, noun: str) -> str:
    return f"{many:,} {noun}{'s' * (many != 1)}"


def _writable(folder: Path) -> str:
    """Return why a folder is not writable, or an empty string."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return error.strerror or str(error)
    free = shutil.disk_usage(folder).free
    return "" if free >= MIN_FREE_BYTES else f"only {free / 2**20:.0f} MiB are free"


def _cache() -> HealthCheck:
    folder = program_cache()
    if folder is None:
        return HealthCheck("compiled programs", "not cached: JAX has no cache folder", False)
    problem = _writable(folder)
    files = [file for file in folder.glob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 2**20
    return HealthCheck(
        "compiled programs",
        f"{len(files)} files, {size:.0f} MiB in {folder}{f': {problem}' if problem else ''}",
        not problem,
    )


def _store(path: Path) -> Iterator[HealthCheck]:
    problem = _writable(path.parent)
    if not path.exists():
        yield HealthCheck(
            "store", f"{path}: none yet{f', and {problem}' if problem else ''}", not problem
        )
        return
    try:
        found = check(path)
    except UnlazyError as error:
        yield HealthCheck("store", str(error), False)
        return
    what = f"{path}: {_count(found.records, 'record')}, {_count(found.runs, 'run')}, "
    what += _count(found.failures, "failure")
    yield HealthCheck(
        "store",
        "; ".join([what, *found.problems[:3], *([problem] if problem else [])]),
        not found.problems and not problem,
    )


def _extra(extra: str, package: str) -> HealthCheck:
    if importlib.util.find_spec(package) is None:
        return HealthCheck(
            f"engine {extra}",
            f"not installed (optional): pip install 'unlazy[{extra}]'",
            optional=True,
        )
    return HealthCheck(f"engine {extra}", f"{package} {importlib.metadata.version(package)}")


def _slurm() -> HealthCheck:
    if shutil.which("sinfo") is None:
        return HealthCheck("SLURM", "not installed (optional)", optional=True)
    try:
        done = subprocess.run(
            ["sinfo", "-h", "-o", "%P %a %D nodes %T"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return HealthCheck("SLURM", "sinfo does not answer", False)
    nodes = ", ".join(done.stdout.split("\n")[:4]).strip(", ")
    return HealthCheck(
        "SLURM", nodes or f"sinfo failed: {done.stderr.strip()[-200:]!r}", done.returncode == 0
    )


def _plugins() -> Iterator[HealthCheck]:
    from unlazy.lab.registry import installed

    for each in installed():
        found = each.problem or f"loaded from {each.package}"
        yield HealthCheck(f"plug-in {each.name}", found, not each.problem)


def _engine(name: str, store: Path) -> HealthCheck:
    from unlazy.lab.engines.choice import engine_named
    from unlazy.lab.registry import claims
    from unlazy.lab.trials import Record

    arms = claims()["shi2022/table1"].arms("smoke").values()
    small = next(trial for arm in arms for trial in arm.trials([10]))
    try:
        with engine_named(name, store=str(store)) as engine:
            found = list(engine.run([small], NullCallback()))
            where = engine.summary
    except UnlazyError as error:
        return HealthCheck(f"engine {name}", str(error), False)
    good = len(found) == 1 and isinstance(found[0], Record)
    return HealthCheck(
        f"engine {name}",
        f"Ran a trial. {where}"
        if good
        else f"could not run a trial: {getattr(found[0], 'reason', '')}",
        good,
    )
