"""Type checker for jaxtyping's import hook: every call is checked against its array annotations.

mypy checks other annotations. As in JAX, a NumPy array is accepted for a JAX array; its shape and
dtype are checked.
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

#: Type checkers accept an int for a float.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True))


def of_arrays(hint):
    """Return whether an annotation contains arrays, except in arguments of callables."""
    if typing.get_origin(hint) is collections.abc.Callable:
        return False
    if isinstance(hint, type) and not typing.get_args(hint):
        return issubclass(hint, (AbstractArray, jax.Array, np.ndarray))
    return any(of_arrays(part) for part in typing.get_args(hint))


def widened(hint):
    """Return the annotation with NumPy arrays added to JAX arrays."""
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
    """Return `function` with its array annotations checked by beartype."""
    hints = function.__annotations__
    if not any(map(of_arrays, hints.values())):
        return function
    for name, hint in hints.items():
        hints[name] = widened(hint) if of_arrays(hint) else typing.Any
    return _check(function)
