"""The program of a SLURM job: run the jobs of a folder one by one, and write each answer to a file.

A file is complete or absent. A SLURM job that is preempted or exceeds its time limit is requeued,
and resumes after the last answer.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import Any

JOB, BEGUN, ANSWER, REFUSED, ORIGIN = (
    ".job",
    ".begun",
    ".answer",
    "refused.txt",
    "origin.json",
)


def put(path: Path, data: bytes) -> None:
    """Write a file atomically: it is complete or absent, even if the process is killed."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


class Bundle:
    """A SLURM job: the jobs of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self) -> str:
        """Run the jobs without an answer, in a thread, so that signals of SLURM are handled."""
        done = threading.Event()
        threading.Thread(target=self._run, args=(done,), daemon=True).start()
        while not done.wait(0.5):
            pass
        return "done"

    def _run(self, done: threading.Event) -> None:
        try:
            folder = Path(self.folder)
            from unlazy.core.errors import BadInput
            from unlazy.lab.engines.pools.work import check_same, hello, run_job

            try:
                check_same(hello(), platform.node(), json.loads((folder / ORIGIN).read_text()))
            except BadInput as error:
                put(folder / REFUSED, str(error).encode())
                return
            for job in sorted(folder.glob(f"*{JOB}")):
                answer = job.with_suffix(ANSWER)
                if not answer.exists():
                    job.with_suffix(BEGUN).touch()
                    put(answer, run_job(job.read_bytes()))
                    job.unlink()
        finally:
            done.set()

    def checkpoint(self) -> Any:
        """Return what SLURM requeues: the same job."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)
