"""Compiled parts of trials, each compiled once for all trials, learners and claims."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class TooLarge(Exception):
    """A program for `trials` needs more memory than allowed."""

    def __init__(self, trials: int, needed: int) -> None:
        super().__init__(trials, needed)
        self.trials, self.needed = trials, needed


class Programs:
    """Cache of compiled parts; equal parts on equal shapes are one program."""

    def __init__(self, memory: int) -> None:
        self.memory, self.count, self.seconds, self.largest = memory, 0, 0.0, 0
        self.stop = threading.Event()
        self._known: dict[Any, Future[tuple[Any, Any, Any]]] = {}
        self._lock = threading.Lock()

    def prepare(self, part: Callable[..., Any], *arguments: Any) -> Any:
        """Compile without running; return shapes."""
        _, shapes, rest = self._program(part, arguments)
        return eqx.combine(shapes, rest)

    def run(self, part: Callable[..., Any], *arguments: Any) -> Any:
        """Compile if necessary, and run."""
        program, _, rest = self._program(part, arguments)
        own, given, _, _ = _opened(part, arguments)
        return eqx.combine(program(own, given), rest)

    def _program(
        self, part: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> tuple[Any, Any, Any]:
        own, given, static, kind = _opened(part, arguments)
        key = (kind, jnp.result_type(float).name)
        with self._lock:
            found, mine = self._known.get(key), Future[tuple[Any, Any, Any]]()
            if found is None:
                self._known[key] = mine
        if found is not None:
            return found.result()  # another thread may still compile it
        try:
            mine.set_result(self._compile(own, given, static))
        except BaseException as error:
            with self._lock:
                del self._known[key]
            mine.set_exception(error)
        return mine.result()

    def _compile(self, own: Any, given: Any, static: Any) -> tuple[Any, Any, Any]:
        if self.stop.is_set():
            raise InterruptedError("the engine was stopped")
        begin = time.perf_counter()
        box: list[Any] = []

        def one(own: Any, given: Any) -> Any:
            part, arguments = eqx.combine((own, given), static)
            arrays, rest = eqx.partition(part(*arguments), eqx.is_array)
            box[:] = [rest]
            return arrays

        # Arrays that all trials of a chunk share, such as an image dataset, are NumPy arrays and
        # are not mapped over.
        axes = jax.tree.map(lambda leaf: None if isinstance(leaf, np.ndarray) else 0, (own, given))
        mapped = jax.vmap(one, in_axes=axes)
        lowered = jax.jit(mapped).lower(own, given)
        program = lowered.compile()
        trials = _count(own, given)
        shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), lowered.out_info
        )
        self.seconds += time.perf_counter() - begin
        self.count += 1
        needed = memory_of(program)
        if needed > self.memory:
            raise TooLarge(trials, needed)
        self.largest = max(self.largest, needed)
        return program, shapes, box[0]


def _opened(part: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """Return the arrays of a part and of its arguments, the rest of both, and a cache key."""
    (own, given), static = eqx.partition((part, arguments), _is_dynamic)
    leaves, structure = jax.tree.flatten((own, given))
    shapes = tuple((leaf.shape, str(leaf.dtype), isinstance(leaf, np.ndarray)) for leaf in leaves)
    rest, rest_structure = jax.tree.flatten(static)
    return own, given, static, (structure, shapes, rest_structure, tuple(map(_comparable, rest)))


def _is_dynamic(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, (np.ndarray, jax.ShapeDtypeStruct))


def _comparable(leaf: Any) -> Any:
    """Return a hashable form of a leaf that is not an array."""
    try:
        hash(leaf)
    except TypeError:
        return repr(leaf)
    return leaf


def _count(own: Any, given: Any) -> int:
    """Return the number of trials in the arguments."""
    mapped = [leaf for leaf in jax.tree.leaves((own, given)) if not isinstance(leaf, np.ndarray)]
    return int(mapped[0].shape[0])


def memory_of(program: Any) -> int:
    """Return the bytes that a compiled program needs."""
    sizes = program.memory_analysis()
    return (
        sizes.temp_size_in_bytes + sizes.argument_size_in_bytes + sizes.output_size_in_bytes
        if sizes is not None
        else 0
    )
