"""The full fault suite: `make faults`, or `python scripts/faults.py [--kills 50] [--engines
processes,dask,slurm]`.

Processes on this machine are killed by SIGKILL at random times: workers, coordinators, the
scheduler of a Dask cluster, SLURM jobs. After each kill the run continues or is resumed. At the end
the store is compared with that of an undisturbed run: no record missing, none twice, equal numbers.
Further tests: a full disk, and a SLURM job that exceeds its time limit.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import faulty
from unlazy.lab.maintenance import check
from unlazy.lab.store import Store

#: Trials per round, and seconds per trial.
COUNT, WAIT = 40, 0.05
ALL = COUNT + 3


class Suite:
    """Rounds of one kind, and their results."""

    def __init__(self, folder: Path, kills: int, rng: random.Random) -> None:
        self.folder, self.kills, self.rng = folder, kills, rng
        self.undisturbed = faulty.expected(folder, COUNT, WAIT)
        self.found: dict[str, Counter[str]] = {}

    def compare(self, what: str, path: Path) -> None:
        """Count lost, duplicate and different records in a store."""
        count = self.found.setdefault(what, Counter())
        with (
            Store(path, read_only=True) as store,
            Store(self.undisturbed, read_only=True) as wanted,
        ):
            ids, expected = store.all_ids(), set(wanted.all_ids())
            count["records"] += len(ids)
            count["lost"] += len(expected - set(ids))
            count["doubled"] += len(ids) - len(set(ids)) + len(set(ids) - expected)
        try:
            faulty.compare(path, self.undisturbed)
        except AssertionError as error:
            count["different"] += 1
            print(f"{what}: {error}", flush=True)

    def until_killed(self, what: str, one_round) -> None:
        """Run rounds until this number of kills."""
        count = self.found.setdefault(what, Counter())
        begin = time.monotonic()
        while count["kills"] < self.kills:
            path = Path(tempfile.mkdtemp(dir=self.folder)) / "store.sqlite"
            count["kills"] += one_round(path)
            count["rounds"] += 1
            self.compare(what, path)
            shutil.rmtree(path.parent)
            print(
                f"{what}: {count['kills']} of {self.kills} kills in {count['rounds']} rounds, "
                f"{time.monotonic() - begin:.0f} s, "
                f"{count['lost']} lost, {count['doubled']} doubled, {count['different']} different",
                flush=True,
            )

    def kill_workers(self, engine: str, path: Path) -> int:
        """Kill workers one after the other; the coordinator must finish."""
        process = faulty.start(engine, path, COUNT, WAIT)
        kills = 0
        for records in sorted(self.rng.sample(range(ALL - 1), 5)):
            kills += faulty.kill_at(
                process, path, records, lambda: faulty.workers_of(process.pid), self.rng
            )
        assert process.wait(600) == 0
        return kills

    def kill_coordinators(self, engine: str, path: Path) -> int:
        """Kill coordinators one after the other, except the last."""
        kills = 0
        for records in sorted(self.rng.sample(range(ALL - 1), 4)):
            process = faulty.start(engine, path, COUNT, WAIT)
            kills += faulty.kill_at(process, path, records, lambda pid=process.pid: [pid], self.rng)
            process.wait(600)
        process = faulty.start(engine, path, COUNT, WAIT)
        assert process.wait(600) == 0
        return kills

    def kill_scheduler(self, path: Path) -> int:
        """Kill the scheduler of a manually started cluster, which the coordinator must report; the
        run resumes on the next cluster.
        """
        kills = 0
        for records in (self.rng.randrange(ALL - 1), None):
            with faulty.cluster(2) as there:
                process = faulty.start(there.address, path, COUNT, WAIT)
                if records is not None:
                    kills += faulty.kill_at(
                        process, path, records, lambda pid=there.scheduler.pid: [pid], self.rng
                    )
                process.wait(600)
        return kills

    def kill_jobs(self, path: Path) -> int:
        """Kill SLURM jobs by SIGKILL or scancel; the coordinator must submit them again."""
        process = faulty.start("slurm", path, COUNT, WAIT)
        kills = 0
        for records in sorted(self.rng.sample(range(ALL - 1), 3)):
            faulty.wait_until(
                lambda records=records: (
                    faulty.stored(path) >= records or process.poll() is not None
                ),
                600,
            )
            names = faulty.job_names(path)
            if process.poll() is None and names:
                if self.rng.random() < 0.5:
                    kills += (
                        subprocess.run(
                            ["scancel", "--name", names], check=False, capture_output=True
                        ).returncode
                        == 0
                    )
                else:
                    kills += (
                        subprocess.run(
                            ["scancel", "--full", "--signal=KILL", "--name", names],
                            check=False,
                            capture_output=True,
                        ).returncode
                        == 0
                    )
        assert process.wait(600) == 0
        return kills


def full_disk(folder: Path) -> str:
    """Fill a file system of 1 MB: finished records must be kept, and the run must resume after
    space is freed.
    """
    place = folder / "small"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False
        ).returncode
    ):
        return "not run: mounting a file system needs root"
    try:
        path = place / "store.sqlite"
        (place / "ballast").write_bytes(b"0" * (780 << 10))
        process = faulty.start("local", path, COUNT, 0.0)
        status = process.wait(300)
        kept = faulty.stored(path)
        problems = check(path).problems if kept else ()
        (place / "ballast").unlink()
        again = faulty.start("local", path, COUNT, 0.0).wait(300)
        after = f"after freeing space status {again}, {faulty.stored(path)} records"
        return f"ended with status {status}, {kept} records kept, {len(problems)} problems; {after}"
    finally:
        subprocess.run(["umount", place], check=False)


def out_of_time(folder: Path) -> str:
    """Run four minutes of work in a SLURM job of two: it must be requeued and resume."""
    path = folder / "late.sqlite"
    code = (
        "import faulty; from unlazy.lab.engines.choice import engine_named; from toys import keep; "
        "from unlazy.lab.store import Store; import unlazy.lab.engines.pools.slurm as s; "
        "s.MIN_SECONDS = 1e9; "
        f"store = Store({str(path)!r}); "
        "keep(faulty.jobs(30, 8.0), store, engine_named('slurm', slurm='time=2', workers=1, "
        f"store={str(path)!r}))"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(faulty.HERE), *filter(None, sys.path)])
    }
    begin = time.monotonic()
    status = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=False, timeout=1200
    ).returncode
    return (
        f"status {status}, {faulty.stored(path)} of 33 records after "
        f"{time.monotonic() - begin:.0f} s of jobs of 120 s"
    )


def main() -> None:
    """Run the selected tests, and print the counts."""
    parser = argparse.ArgumentParser(
        description="Kill processes at random moments, and count what is lost."
    )
    parser.add_argument("--kills", type=int, default=50, help="of each kind")
    parser.add_argument("--engines", default="processes,dask,slurm")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    engines = options.engines.split(",")
    others: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite = Suite(folder, options.kills, random.Random(options.seed))
        for engine in [engine for engine in engines if engine in ("processes", "dask")]:
            suite.until_killed(
                f"{engine}: workers", lambda path, engine=engine: suite.kill_workers(engine, path)
            )
            suite.until_killed(
                f"{engine}: coordinators",
                lambda path, engine=engine: suite.kill_coordinators(engine, path),
            )
        if "dask" in engines:
            suite.until_killed("dask: schedulers", suite.kill_scheduler)
        if "slurm" in engines:
            if shutil.which("sbatch") is None:
                others["slurm"] = (
                    "not run: there is no SLURM here (scripts/one_node_slurm.sh start makes one)"
                )
            else:
                suite.until_killed("slurm: jobs", suite.kill_jobs)
                suite.until_killed(
                    "slurm: coordinators", lambda path: suite.kill_coordinators("slurm", path)
                )
                others["slurm: out of time"] = out_of_time(folder)
        others["full disk"] = full_disk(folder)
    bad = 0
    for what, count in suite.found.items():
        print(
            f"{what:24} {count['kills']:4} kills  {count['rounds']:3} rounds  "
            f"{count['records']:6} records  "
            f"{count['lost']} lost  {count['doubled']} doubled  {count['different']} different"
        )
        bad += count["lost"] + count["doubled"] + count["different"]
    for what, told in others.items():
        print(f"{what:24} {told}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
