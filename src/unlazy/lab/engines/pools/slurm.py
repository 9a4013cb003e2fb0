"""`--engine slurm`: job arrays of a SLURM cluster, through submitit. All messages are files.

The folder STORE.slurm next to the store must be visible to all nodes. A submission is a folder in
it with one folder per SLURM job, which contains jobs and their answers. Only the coordinator reads
answers into the store. It may be stopped: the next one collects answers, waits for running jobs,
and submits only what is not running.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import re
import shutil
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from unlazy.core.errors import BadInput, require, unknown
from unlazy.lab.costs import Costs
from unlazy.lab.engines.base import Callback, Engine, NullCallback, Plan, require_data
from unlazy.lab.engines.local import default_memory, groups_of
from unlazy.lab.engines.pools.bundle import ANSWER, BEGUN, JOB, ORIGIN, REFUSED, Bundle, put
from unlazy.lab.engines.pools.engine import summary_of
from unlazy.lab.engines.pools.messages import packed, read
from unlazy.lab.engines.pools.processes import one_thread_environment
from unlazy.lab.engines.pools.queue import Chunk, JobQueue
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import Failure, Record, Runnable

#: Seconds between two checks of the folder, and of the queue.
POLL_SECONDS, QUEUE_SECONDS = 0.5, 3.0
#: Minimum and maximum seconds of work per job.
MIN_SECONDS, MAX_SECONDS = 60.0, 600.0
#: Parallel jobs, time limit in minutes, and maximum number of requeues after the time limit.
JOBS, MINUTES, REQUEUED = 16, 60, 50
#: Consecutive submissions without an answer after which the engine gives up.
MAX_FAILED_SUBMISSIONS = 5
#: Resources that `--slurm` accepts.
RESOURCES = (
    "partition",
    "time",
    "mem",
    "cpus_per_task",
    "account",
    "qos",
    "constraint",
    "exclude",
    "nodelist",
    "gres",
    "gpus_per_node",
)
#: Final states that are not caused by the trials of a job.
NOT_ITS_FAULT = ("CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
ENDED = (*NOT_ITS_FAULT, "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT")


def resources_of(text: str) -> dict[str, Any]:
    """Parse `partition=cpu,time=1:30:00,mem=4G` into options of a job."""
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = part.partition("=")
        name = name.strip().replace("-", "_")
        require(
            bool(sign and value.strip()),
            "--slurm must be a comma-separated list of NAME=VALUE, such as partition=cpu,time=60, "
            f"got {part!r}.",
        )
        if name not in RESOURCES:
            raise unknown("SLURM resource", name, RESOURCES)
        found[name] = minutes(value.strip()) if name == "time" else value.strip()
    return found


def minutes(text: str) -> int:
    """Return minutes from a time in the format of SLURM: 90, 1:30:00, 1-12:00:00."""
    match = re.fullmatch(r"(?:(\d{1,3})-)?(?:(\d{1,4}):)?(\d{1,5})(?::(\d{1,2}))?", text)
    if match is None:
        raise BadInput(
            f"A time must be minutes or hours:minutes:seconds, such as 90 or 1:30:00, got {text!r}."
        )
    days, hours, rest, seconds = (int(group or 0) for group in match.groups())
    if match.group(2) is not None and match.group(4) is None:  # minutes:seconds
        hours, rest, seconds = 0, hours, rest
    found = 24 * 60 * days + 60 * hours + rest + (1 if seconds else 0)
    require(found >= 1, "The time of a job must be at least 1 minute.")
    return found


class _Submission:
    """A job array: its name in the queue, its folder, and the chunks without an answer by job."""

    def __init__(self, folder: Path, chunks: dict[tuple[int, int], Chunk | None]) -> None:
        self.folder, self.chunks = folder, chunks
        self.answers = 0

    @property
    def name(self) -> str:
        return f"unlazy-{self.folder.name}"

    def file(self, place: tuple[int, int], suffix: str) -> Path:
        return self.folder / str(place[0]) / f"{place[1]:04}{suffix}"


class SlurmEngine(Engine):
    """Runs trials as SLURM jobs.

    `jobs`: number of parallel jobs; `memory`: bytes per program; `options`: resources of a job.
    """

    def __init__(
        self, store: Path, options: dict[str, Any], jobs: int = JOBS, memory: int | None = None
    ) -> None:
        try:
            import submitit
        except ImportError:
            raise BadInput("submitit is not installed: pip install 'unlazy[slurm]'.") from None
        self._submitit = submitit
        for command in ("sbatch", "squeue"):
            require(
                shutil.which(command) is not None,
                f"SLURM is not available: the command {command} is missing. Run this on a login "
                "node.",
            )
        self.folder, self.options, self.jobs = store.with_name(f"{store.name}.slurm"), options, jobs
        self.memory = default_memory() if memory is None else memory
        self.costs = Costs()
        self._done: Counter[str] = Counter()
        self._lost = 0

    def plan(self, trials: Sequence[Runnable]) -> Plan:
        groups, _ = groups_of(trials)
        seconds = sum(map(self.costs.seconds, trials))
        at_once = max(1, min(self.jobs, round(seconds / MIN_SECONDS)))
        compiling = self.costs.compile_seconds * len(groups) / at_once
        shapes, cost = len(groups), self.costs.seconds
        return Plan(len(trials), shapes, seconds, seconds / at_once, compiling, self.memory, cost)

    def run(
        self, trials: Sequence[Runnable], callback: Callback | None = None
    ) -> Generator[Record | Failure]:
        """Yield records as answers arrive.

        Closing the iterator does not cancel jobs; the next coordinator collects their answers.
        """
        require_data(trials)
        with self._alone():
            yield from self._run(trials, callback or NullCallback())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder: two coordinators would take each other's answers for lost work.

        The lock is released when the process ends.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(
                    f"Another coordinator waits for the SLURM jobs of {self.folder}. Wait for "
                    "it or stop it."
                ) from None
            except OSError:
                pass  # a file system without locks
            yield

    def _run(self, trials: Sequence[Runnable], callback: Callback) -> Iterator[Record | Failure]:
        by_id = {trial.id: trial for trial in trials}
        # The queue is read first: a job that leaves it later has answered before the next check.
        states, active = self._queue(), []
        for found in self._earlier_submissions(by_id):
            yield from self._collected(found, None, by_id, callback)
            if not _alive(states.get(found.name, {})):
                shutil.rmtree(found.folder, ignore_errors=True)
            elif any(chunk is not None for chunk in found.chunks.values()):
                active.append(found)
        taken = {
            trial.id
            for each in active
            for chunk in each.chunks.values()
            if chunk is not None
            for trial in chunk.trials
        }
        done = self._seen
        queue = JobQueue(
            [trial for key, trial in by_id.items() if key not in taken | done], self.costs.seconds
        )
        failed, checked = 0, 0.0
        while queue or active:
            if queue:
                active.append(self._submit(queue))
                callback.running(
                    sum(
                        len(chunk.trials)
                        for chunk in active[-1].chunks.values()
                        if chunk is not None
                    )
                )
            time.sleep(POLL_SECONDS)
            for each in active:
                yield from self._collected(each, queue, by_id, callback)
            if time.monotonic() - checked > QUEUE_SECONDS:
                states, checked = self._queue(), time.monotonic()
                callback.staffed(
                    sum(
                        state == "RUNNING"
                        for each in active
                        for state in states.get(each.name, {}).values()
                    )
                )
                for each in list(active):
                    # Answers that arrived while the queue was read must not count as lost.
                    yield from self._collected(each, queue, by_id, callback)
                    yield from self._lost_chunks(each, states.get(each.name, {}), queue)
                    if not each.chunks:
                        active.remove(each)
                        shutil.rmtree(each.folder, ignore_errors=True)
                        failed = 0 if each.answers else failed + 1
                        require(
                            failed < MAX_FAILED_SUBMISSIONS,
                            f"{MAX_FAILED_SUBMISSIONS} consecutive SLURM submissions ended without "
                            f"an answer. Their logs are in {self.folder / 'logs'}.",
                        )

    def _earlier_submissions(self, by_id: dict[str, Runnable]) -> Iterator[_Submission]:
        """Yield submissions of earlier coordinators."""
        self._seen: set[str] = set()
        for place, manifest in enumerate(sorted(self.folder.glob("*/manifest.json"))):
            try:
                told = json.loads(manifest.read_text())
                chunks: dict[tuple[int, int], Chunk | None] = {}
                for job, jobs in enumerate(told):
                    for index, (ids, size) in enumerate(jobs):
                        known = tuple(by_id[each] for each in ids if each in by_id)
                        # A chunk with trials of another command is left to that command.
                        chunks[job, index] = (
                            Chunk(known, int(size), -1 - place)
                            if known and len(known) == len(ids)
                            else None
                        )
            except (OSError, ValueError, TypeError) as error:
                raise BadInput(
                    f"{manifest} is damaged: {error}. If no job of it runs, remove the folder "
                    f"{manifest.parent}."
                ) from error
            yield _Submission(manifest.parent, chunks)

    def _collected(
        self,
        of: _Submission,
        queue: JobQueue | None,
        by_id: dict[str, Runnable],
        callback: Callback,
    ) -> Iterator[Record | Failure]:
        """Yield new records and failures.

        An answer file is removed after its records are stored, i.e. when the generator resumes.
        """
        for refusal in of.folder.glob(f"*/{REFUSED}"):
            raise BadInput(refusal.read_text(encoding="utf-8", errors="replace"))
        for place, chunk in list(of.chunks.items()):
            file = of.file(place, ANSWER)
            try:
                data = file.read_bytes()
            except FileNotFoundError:
                continue
            answer = read(data, str(file))
            of.answers += 1
            if chunk is not None and queue is not None:
                records, failures = queue.answered(chunk, answer, self.memory)
            else:
                records, failures = list(answer.records), list(answer.failures)
            self._done[answer.host] += len(records)
            if answer.compiled[0]:
                callback.compiled(*answer.compiled)
            for record in records:
                self._seen.add(record.id)
                if record.id in by_id:
                    callback.finished(by_id[record.id], record.seconds)
                yield record
            yield from failures
            del of.chunks[place]
            with contextlib.suppress(FileNotFoundError):
                file.unlink()

    def _lost_chunks(
        self, of: _Submission, states: dict[int, str], queue: JobQueue
    ) -> Iterator[Failure]:
        """Handle chunks of jobs that ended: the chunk that was running counts a death, others do
        not.
        """
        for place, chunk in list(of.chunks.items()):
            end = states.get(place[0], "UNKNOWN")
            if place[0] in _alive(states) or of.file(place, ANSWER).exists():
                continue
            del of.chunks[place]
            if chunk is None:
                continue
            if of.file(place, BEGUN).exists() and end not in NOT_ITS_FAULT:
                self._lost += 1
                yield from queue.lost(chunk, f"its SLURM job ended as {end}")
            else:
                queue.again(chunk)

    def _submit(self, queue: JobQueue) -> _Submission:
        total = queue.seconds
        wanted = min(MAX_SECONDS, max(MIN_SECONDS, total / self.jobs))
        jobs: list[list[Chunk]] = []
        while queue:
            job: list[Chunk] = []
            groups: dict[int, None] = {}
            seconds = 0.0
            while seconds < wanted and (chunk := queue.take(reversed(groups))) is not None:
                seconds += (
                    sum(map(self.costs.seconds, chunk.trials))
                    + (chunk.group not in groups) * self.costs.compile_seconds
                )
                groups[chunk.group] = None
                job.append(chunk)
            jobs.append(job)
        submission = _Submission(
            self.folder / uuid.uuid4().hex[:12],
            {
                (job, index): chunk
                for job, chunks in enumerate(jobs)
                for index, chunk in enumerate(chunks)
            },
        )
        for number, chunks in enumerate(jobs):
            (submission.folder / str(number)).mkdir(parents=True)
            put(submission.folder / str(number) / ORIGIN, json.dumps(provenance()).encode())
            for index, chunk in enumerate(chunks):
                put(
                    submission.file((number, index), JOB),
                    packed(chunk.trials, chunk.size, self.memory),
                )
        manifest = [
            [[[trial.id for trial in chunk.trials], chunk.size] for chunk in chunks]
            for chunks in jobs
        ]
        put(submission.folder / "manifest.json", json.dumps(manifest).encode())
        self._send(submission, len(jobs))
        return submission

    def _send(self, submission: _Submission, jobs: int) -> None:
        time_limit = self.options.get("time", MINUTES)
        threads = (
            []
            if int(self.options.get("cpus_per_task", 1)) > 1
            else list(one_thread_environment().items())
        )
        executor = self._submitit.SlurmExecutor(
            folder=self.folder / "logs", max_num_timeout=REQUEUED
        )
        executor.update_parameters(
            **{"time": time_limit, "cpus_per_task": 1} | self.options,
            job_name=submission.name,
            array_parallelism=self.jobs,
            signal_delay_s=min(90, 15 * time_limit),
            setup=[f"export {name}={_quoted(value)}" for name, value in threads],
        )
        try:
            with executor.batch():
                for job in range(jobs):
                    executor.submit(Bundle(str((submission.folder / str(job)).resolve())))
        except Exception as error:
            shutil.rmtree(submission.folder, ignore_errors=True)
            raise BadInput(
                f"SLURM rejected the jobs: {_last_line(error)}. Finished trials are saved."
            ) from error

    def _queue(self) -> dict[str, dict[int, str]]:
        """Return the states of our jobs by submission; SLURM keeps ended jobs for a while."""
        found: dict[str, dict[int, str]] = {}
        for line in _output(
            "squeue", "-h", "-r", "-t", "all", "-u", getpass.getuser(), "-o", "%j|%K|%T"
        ).splitlines():
            name, index, state = line.split("|")
            if name.startswith("unlazy-"):
                found.setdefault(name, {})[int(index) if index.isdigit() else 0] = state
        return found

    @property
    def summary(self) -> str:
        return summary_of(self._done, self._lost)


def _alive(states: dict[int, str]) -> set[int]:
    return {job for job, state in states.items() if state not in ENDED}


def _output(*command: str) -> str:
    """Return the output of a command of SLURM; a failed command is tried again."""
    for _ in range(5):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        time.sleep(2)
    raise BadInput(
        f"SLURM does not answer: {command[0]} failed with {done.stderr.strip()[-200:]!r}. Finished "
        "trials are saved, and jobs continue."
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def slurm_engine(
    store: str, *, resources: str = "", workers: int | None = None, memory: int | None = None
) -> SlurmEngine:
    """Return an engine of SLURM jobs whose files are next to a store."""
    return SlurmEngine(
        Path(store).resolve(), resources_of(resources), JOBS if workers is None else workers, memory
    )
