"""A worker process of the `processes` engine: `python -m unlazy.lab.engines.pools.worker IN OUT`.

IN and OUT are pipes to its coordinator. The worker exits when the coordinator does.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import BinaryIO


def receive(pipe: BinaryIO) -> bytes | None:
    """Return a message (length in eight bytes, then content); None if the pipe is closed."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "little")
    body = pipe.read(size)
    return body if len(body) == size else None


def post(pipe: BinaryIO, message: bytes) -> None:
    """Send a message."""
    pipe.write(len(message).to_bytes(8, "little") + message)
    pipe.flush()


def main(arguments: list[str]) -> None:
    """Run jobs until the coordinator exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator handles Ctrl-C
    incoming, outgoing = os.fdopen(int(arguments[0]), "rb"), os.fdopen(int(arguments[1]), "wb")
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        while (message := receive(incoming)) is not None:
            jobs.put(message)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    from unlazy.lab.engines.pools.work import hello, run_job

    post(outgoing, json.dumps(hello()).encode())
    while True:
        post(outgoing, run_job(jobs.get()))


if __name__ == "__main__":
    main(sys.argv[1:])
