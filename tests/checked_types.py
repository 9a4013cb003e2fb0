"""An import hook: every call is compared with its annotations of arrays.

Other annotations are mypy's. As in JAX itself, a NumPy array may stand for a JAX array; its axes
and the kind of its numbers are checked all the same.

jaxtyping has such a hook, too. It prepares the checks of every function when a module is imported,
also of those that take no arrays, and recompiles all libraries that such a module imports. Here, a
function's annotations are read when it is first called.
"""

import ast
import collections.abc
import dataclasses
import functools
import operator
import sys
import types
import typing
from importlib.machinery import PathFinder, SourceFileLoader

import jax
import jaxtyping
import numpy as np
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

#: Type checkers accept an int for a float.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True))
#: Functions' codes, and whether their annotations name arrays.
_takes_arrays = {}


def install(packages):
    """Check the modules of these packages, if they are imported from here on."""
    sys.meta_path.insert(0, _Finder(packages))


class _Finder:
    """Finds modules of the packages."""

    def __init__(self, packages):
        self.packages = frozenset(packages)

    def find_spec(self, name, path=None, target=None):
        if ".".join(name.split(".")[:2]) not in self.packages:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Decorates all functions and classes of a module."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for node in ast.walk(tree):
            # The innermost decorator of a function, which sees its annotations, and the outermost
            # of a class, which may be made a dataclass by another.
            if isinstance(node, ast.FunctionDef):
                node.decorator_list.append(_decorator("checked", node))
            elif isinstance(node, ast.ClassDef):
                node.decorator_list.insert(0, _decorator("checked_class", node))
        return compile(tree, path, "exec", dont_inherit=True)


def _decorator(name, node):
    expression = ast.parse(f"__import__('checked_types').{name}", mode="eval").body
    for part in ast.walk(expression):
        ast.copy_location(part, node)
    return expression


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
    """`function` with its annotations of arrays checked by beartype."""
    if _takes_arrays.get(function.__code__) is False:
        return function
    chosen = None

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal chosen
        if chosen is None:
            chosen = _chosen(function)
        return chosen(*args, **kwargs)

    return call


def checked_class(kind):
    """`kind`, whose fields are checked by its constructor if it is a dataclass."""
    made = vars(kind).get("__init__") if dataclasses.is_dataclass(kind) else None
    if made is not None and not hasattr(made, "__wrapped__"):
        kind.__init__ = checked(made)
    return kind


def _chosen(function):
    """Return the function with checks, or itself if no array is named."""
    code = function.__code__
    if code not in _takes_arrays:
        hints = (_evaluated(hint, function) for hint in function.__annotations__.values())
        _takes_arrays[code] = any(map(of_arrays, hints))
    return (
        jaxtyping.jaxtyped(function, typechecker=_arrays_only) if _takes_arrays[code] else function
    )


def _evaluated(hint, function):
    """Return an annotation, or None if it names what is imported for type checkers alone."""
    try:
        return eval(hint, function.__globals__) if isinstance(hint, str) else hint
    except NameError:
        return None


def _arrays_only(function):
    """Check annotations of arrays, and no others."""
    hints = function.__annotations__
    if not any(map(of_arrays, hints.values())):
        return function
    for name, hint in hints.items():
        hints[name] = widened(hint) if of_arrays(hint) else typing.Any
    return _check(function)
