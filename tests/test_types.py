"""Annotations of arrays are checked at every call in these tests (`checked_types`)."""

import importlib
import inspect
import pkgutil
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from jaxtyping import TypeCheckError

import unlazy
from conftest import COMPUTING
from unlazy.kernels import RBF
from unlazy.networks.two_layer import TwoLayer
from unlazy.solvers.ridge import fit_gram


def modules():
    found = pkgutil.walk_packages(unlazy.__path__, "unlazy.")
    return [one.name for one in found if one.name.split(".")[1] in COMPUTING]


def annotated(module):
    """Yield the classes and functions that a module defines, without generated constructors."""
    things = [
        one for one in vars(module).values() if getattr(one, "__module__", 0) == module.__name__
    ]
    for kind in filter(inspect.isclass, things):
        yield kind
        things += [getattr(part, "fget", part) for part in vars(kind).values()]
    for function in map(inspect.unwrap, filter(callable, things)):
        code = getattr(function, "__code__", None)
        if code is not None and code.co_filename == module.__file__:
            yield function


@pytest.mark.parametrize("name", modules())
def test_annotations_can_be_read(name):
    """An annotation that cannot be evaluated is not checked at run time. Data frames are the
    exception: mypy alone checks functions that take them, so that pandas is imported on demand.
    """
    module = importlib.import_module(name)
    of_tables = name.startswith("unlazy.tasks.tables.")
    frames = {"DataFrame": pandas.DataFrame, "Series": pandas.Series} if of_tables else {}
    for thing in annotated(module):
        typing.get_type_hints(thing, localns=frames, include_extras=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: RBF(1.0)(jnp.ones((3, 2)), jnp.ones((4, 5))),
        lambda: RBF(1.0)(jnp.ones(3), jnp.ones((4, 3))),
        lambda: RBF(1.0)(jnp.ones((3, 2), int), jnp.ones((4, 2))),
        lambda: fit_gram(np.ones(4), np.ones(4)),
        lambda: jax.jit(RBF(1.0))(jnp.ones((3, 2)), jnp.ones((4, 5))),
        lambda: TwoLayer(jnp.ones((3, 2)), jnp.ones(4), jnp.ones(3), jnp.zeros(())),
    ],
    ids=["axes of two arguments", "rank", "integers", "host", "compiled", "fields"],
)
def test_a_wrong_array_is_refused(call):
    with pytest.raises(TypeCheckError):
        call()
