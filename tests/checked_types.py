"""The type checker of jaxtyping's import hook: every call is compared with its annotations of
arrays.

Other annotations are mypy's.
"""

import collections.abc
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


def checked(function):
    """`function` with its annotations of arrays checked by beartype."""
    hints = function.__annotations__
    if not any(map(of_arrays, hints.values())):
        return function
    for name, hint in hints.items():
        if not of_arrays(hint):
            hints[name] = typing.Any
    return _check(function)
