"""The type checker of jaxtyping's import hook: every call is compared with its annotations of
arrays.

Other annotations are mypy's. As in JAX itself, a NumPy array may stand for a JAX array; its axes
and the kind of its numbers are checked all the same.
"""

import collections.abc
import functools
import operator
import types
import typing

import jax
import numpy as np
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

#: An int is a float, as type checkers have it.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True))


def of_arrays(hint):
    """Whether an annotation names arrays, not counting those that a function would take."""
    if typing.get_origin(hint) is collections.abc.Callable:
        return False
    if isinstance(hint, type) and not typing.get_args(hint):
        return issubclass(hint, (AbstractArray, jax.Array, np.ndarray))
    return any(of_arrays(part) for part in typing.get_args(hint))


def widened(hint):
    """The annotation with NumPy arrays beside JAX arrays."""
    if hint is jax.Array:
        return jax.Array | np.ndarray
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        if hint.array_type is jax.Array:
            return hint.dtype[jax.Array | np.ndarray, hint.dim_str]
        return hint
    parts = tuple(map(widened, typing.get_args(hint)))
    if not parts:
        return hint
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return functools.reduce(operator.or_, parts)
    return origin[parts]


def checked(function):
    """`function` with its annotations of arrays checked by beartype."""
    hints = function.__annotations__
    if not any(map(of_arrays, hints.values())):
        return function
    for name, hint in hints.items():
        hints[name] = widened(hint) if of_arrays(hint) else typing.Any
    return _check(function)
