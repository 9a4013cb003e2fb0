"""`--engine slurm`: job arrays of a SLURM cluster, through submitit. There is no live scheduler to
lose: everything passes through files.

Beside the store stands a folder, STORE.slurm, that all nodes must see. A submission is a folder in
it with one folder a job: errands that go to the job, answers that come back. The coordinator alone
reads answers into the store. It may be away meanwhile: the next one takes what is there, waits for
jobs that still run, and submits only what nobody runs.
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
from unlazy.lab.engines.pools.engine import told_summary
from unlazy.lab.engines.pools.messages import packed, read
from unlazy.lab.engines.pools.processes import one_thread_environment
from unlazy.lab.engines.pools.queue import Chunk, JobQueue
from unlazy.lab.provenance import provenance
from unlazy.lab.trials import Failure, Record, Runnable

#: Seconds between two looks at the folder, and at the queue. A job gets work for about so many
#: seconds, at least and at most.
LOOK, QUEUE_LOOK = 0.5, 3.0
MIN_SECONDS, MAX_SECONDS = 60.0, 600.0
#: Jobs at once, minutes of a job, and how often SLURM may put one back into its queue after its
#: time was over.
JOBS, MINUTES, REQUEUED = 16, 60, 50
#: Submissions in a row that end without a single answer, before the cluster is given up.
FRUITLESS = 5
#: What `--slurm` may ask for.
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
#: Ends of a job that tell nothing of what it ran.
NOT_ITS_FAULT = ("CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
ENDED = (*NOT_ITS_FAULT, "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT")


def resources_of(text: str) -> dict[str, Any]:
    """`partition=cpu,time=1:30:00,mem=4G` as options of a job; times in minutes, or as
    hours:minutes:seconds.
    """
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = part.partition("=")
        name = name.strip().replace("-", "_")
        require(
            bool(sign and value.strip()),
            "--slurm takes NAME=VALUE with commas between, such as partition=cpu,time=60, but "
            f"has {part!r}.",
        )
        if name not in RESOURCES:
            raise unknown("resource of SLURM jobs", name, RESOURCES)
        found[name] = minutes(value.strip()) if name == "time" else value.strip()
    return found


def minutes(text: str) -> int:
    """Minutes, as SLURM writes times: 90, 1:30:00, 1-12:00:00."""
    match = re.fullmatch(r"(?:(\d{1,3})-)?(?:(\d{1,4}):)?(\d{1,5})(?::(\d{1,2}))?", text)
    if match is None:
        raise BadInput(
            "A time is written in minutes or as hours:minutes:seconds, such as 90 or 1:30:00, but "
            f"is {text!r}."
        )
    days, hours, rest, seconds = (int(group or 0) for group in match.groups())
    if match.group(2) is not None and match.group(4) is None:  # minutes:seconds
        hours, rest, seconds = 0, hours, rest
    found = 24 * 60 * days + 60 * hours + rest + (1 if seconds else 0)
    require(found >= 1, "A job needs at least a minute.")
    return found


class _Submission:
    """An array of jobs: name in the queue, folder, and unanswered pieces of each job."""

    def __init__(self, folder: Path, chunks: dict[tuple[int, int], Chunk | None]) -> None:
        self.folder, self.chunks = folder, chunks
        self.answers = 0

    @property
    def name(self) -> str:
        return f"unlazy-{self.folder.name}"

    def file(self, place: tuple[int, int], suffix: str) -> Path:
        return self.folder / str(place[0]) / f"{place[1]:04}{suffix}"


class SlurmEngine(Engine):
    """Runs trials as jobs.

    `jobs`: at once; `memory`: bytes that one program may use; `options`: resources of a job.
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
                f"There is no SLURM here: the command {command} is missing. Run this on a login "
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
        """Records as files come in.

        Closing the iterator cancels nothing: jobs go on, and the next coordinator takes what they
        leave.
        """
        require_data(trials)
        with self._alone():
            yield from self._run(trials, callback or NullCallback())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One coordinator at a time: two would take each other's answers for lost work.

        A lock dies with its process.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(
                    f"Another coordinator waits for the SLURM jobs of {self.folder}. Let it, or "
                    "stop it first."
                ) from None
            except OSError:
                pass  # a file system without locks: it is up to the user
            yield

    def _run(self, trials: Sequence[Runnable], callback: Callback) -> Iterator[Record | Failure]:
        by_id = {trial.id: trial for trial in trials}
        states, going = (
            self._queue(),
            [],
        )  # first the queue: whoever leaves it from now on has answered before the next look
        for found in self._left_behind(by_id):
            yield from self._collected(found, None, by_id, callback)
            if not _alive(states.get(found.name, {})):
                shutil.rmtree(found.folder, ignore_errors=True)
            elif any(chunk is not None for chunk in found.chunks.values()):
                going.append(found)
        taken = {
            trial.id
            for each in going
            for chunk in each.chunks.values()
            if chunk is not None
            for trial in chunk.trials
        }
        done = self._seen
        queue = JobQueue(
            [trial for key, trial in by_id.items() if key not in taken | done], self.costs.seconds
        )
        fruitless, looked = 0, 0.0
        while queue or going:
            if queue:
                going.append(self._submit(queue))
                callback.running(
                    sum(
                        len(chunk.trials)
                        for chunk in going[-1].chunks.values()
                        if chunk is not None
                    )
                )
            time.sleep(LOOK)
            for each in going:
                yield from self._collected(each, queue, by_id, callback)
            if time.monotonic() - looked > QUEUE_LOOK:
                states, looked = self._queue(), time.monotonic()
                callback.staffed(
                    sum(
                        state == "RUNNING"
                        for each in going
                        for state in states.get(each.name, {}).values()
                    )
                )
                for each in list(going):
                    # What was answered while the queue was looked at must not count as lost.
                    yield from self._collected(each, queue, by_id, callback)
                    yield from self._mourned(each, states.get(each.name, {}), queue)
                    if not each.chunks:
                        going.remove(each)
                        shutil.rmtree(each.folder, ignore_errors=True)
                        fruitless = 0 if each.answers else fruitless + 1
                        require(
                            fruitless < FRUITLESS,
                            f"{FRUITLESS} SLURM submissions in a row ended without an answer. "
                            f"Their logs are in {self.folder / 'logs'}.",
                        )

    def _left_behind(self, by_id: dict[str, Runnable]) -> Iterator[_Submission]:
        """Submissions of coordinators before this one."""
        self._seen: set[str] = set()
        for place, manifest in enumerate(sorted(self.folder.glob("*/manifest.json"))):
            try:
                told = json.loads(manifest.read_text())
                chunks: dict[tuple[int, int], Chunk | None] = {}
                for job, jobs in enumerate(told):
                    for index, (ids, size) in enumerate(jobs):
                        known = tuple(by_id[each] for each in ids if each in by_id)
                        # One that holds trials of another command is waited for by that command.
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
        """What has come back since the last look.

        A file is removed when its records are in the store, which the next step proves.
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

    def _mourned(
        self, of: _Submission, states: dict[int, str], queue: JobQueue
    ) -> Iterator[Failure]:
        """Pieces of jobs that are gone: the one that ran is suspect, the others are run again."""
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
                f"SLURM does not take the jobs: {_last_line(error)}. What was finished is kept."
            ) from error

    def _queue(self) -> dict[str, dict[int, str]]:
        """The states of our jobs, by submission; of those that ended as long as SLURM remembers."""
        found: dict[str, dict[int, str]] = {}
        for line in _told(
            "squeue", "-h", "-r", "-t", "all", "-u", getpass.getuser(), "-o", "%j|%K|%T"
        ).splitlines():
            name, index, state = line.split("|")
            if name.startswith("unlazy-"):
                found.setdefault(name, {})[int(index) if index.isdigit() else 0] = state
        return found

    @property
    def summary(self) -> str:
        return told_summary(self._done, self._lost)


def _alive(states: dict[int, str]) -> set[int]:
    return {job for job, state in states.items() if state not in ENDED}


def _told(*command: str) -> str:
    """What a command of SLURM says; one that does not answer is asked again."""
    for _ in range(5):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        time.sleep(2)
    raise BadInput(
        f"SLURM does not answer: {command[0]} says {done.stderr.strip()[-200:]!r}. What was "
        "finished is kept, and jobs go on."
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def slurm_engine(
    store: str, *, resources: str = "", workers: int | None = None, memory: int | None = None
) -> SlurmEngine:
    """An engine of SLURM jobs whose files stand beside a store."""
    return SlurmEngine(
        Path(store).resolve(), resources_of(resources), JOBS if workers is None else workers, memory
    )
