"""One MLIR context for all programs of a test, if this version of JAX allows it.

JAX makes a context for each program, which takes milliseconds. Each thread has its own, because
contexts are not safe between threads.
"""

import functools
import threading

from jax._src.interpreters import mlir

_kept = threading.local()


def share():
    """Let programs of a thread share a context; a second call changes nothing."""
    made = getattr(mlir, "make_ir_context", None)
    if made is None or hasattr(made, "__wrapped__"):
        return

    @functools.wraps(made)
    def make_ir_context():
        if not hasattr(_kept, "context"):
            _kept.context = made()
        return _kept.context

    mlir.make_ir_context = make_ir_context


def renew():
    """Let the next program of this thread begin a context, so that constants are not kept."""
    vars(_kept).clear()
