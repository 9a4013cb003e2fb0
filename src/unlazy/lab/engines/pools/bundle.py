"""What a SLURM job does: it runs the errands of its folder one by one, and leaves each answer as a
file, whole or not at all.

A job that is sent away, by preemption or its time limit, is put back into the queue, and goes on
after the last answer.
"""

from __future__ import annotations

import json
import os
import platform
import threading
from pathlib import Path
from typing import Any

JOB, BEGUN, ANSWER, REFUSED, ORIGIN = (
    ".errand",
    ".begun",
    ".answer",
    "refused.txt",
    "origin.json",
)


def put(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, whatever kills the process or the machine."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


class Bundle:
    """A job: the errands of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self) -> str:
        """Run what has no answer yet.

        In a thread, so that the signals of SLURM find somebody who listens.
        """
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
        """What is put back into the queue: the same."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)
