"""Interfaces of models and networks.

A network is a callable pytree with named parameter groups. Optional capabilities are coordinates in
a basis of the inputs (`Rotatable`), access to first-layer weights (`HasNeurons`), exact averages
over noise in the neurons (`Smoothable`), and bounds on derivatives (`SlopeBounded`).
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import unknown

#: Scores of one output, without an axis for it, or of several outputs.
Scores = Float[Array, " n"] | Float[Array, "n o"]


class Model(eqx.Module):
    """A fitted model: a callable that returns scores.

    A trace stacks models along the first axis of their arrays. A class that stores several models
    differently sets `stacked` to False and overrides `at` and `scores`.
    """

    stacked: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        """Return the scores of a batch."""

    def enter(self, basis: Float[Array, "r d"]) -> Model:
        """Return the same model for inputs given by their coordinates in `basis`.

        Models with a cheaper method override it.
        """
        return OnCoordinates(self, basis)

    def at(self, index: int) -> Self:
        """Return one of several models, as stored in a `Trace`."""
        stacked, rest = eqx.partition(self, eqx.is_array)
        result: Self = eqx.combine(jax.tree.map(lambda leaf: leaf[index], stacked), rest)
        return result

    def each(self, function: Callable[[Model], Any], count: int) -> Any:
        """Return the stacked values of a function of each of `count` models.

        Models are evaluated one by one, to limit memory.
        """
        if self.stacked:
            arrays, rest = eqx.partition(self, eqx.is_array)
            return jax.lax.map(lambda one: function(eqx.combine(one, rest)), arrays)
        return jax.tree.map(
            lambda *leaves: np.stack(leaves), *[function(self.at(index)) for index in range(count)]
        )

    def scores(
        self, x: Float[Array, "n *d"], basis: Float[Array, "r d"] | None = None
    ) -> Float[Array, "s n ..."]:
        """Return the scores of several models on inputs x, or on x·basis."""
        arrays, rest = eqx.partition(self, eqx.is_array)

        def one(arrays: Any) -> Any:
            model = eqx.combine(arrays, rest)
            return (model if basis is None else model.enter(basis))(x)

        result: Array = jax.lax.map(one, arrays)
        return result


class Predictor(Model):
    """A model scores = function(parameters, x), such as `Predictor(lambda w, x: x @ w, w)`."""

    function: Callable[[Any, Array], Scores] = eqx.field(static=True)
    parameters: Any

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        return self.function(self.parameters, x)


class OnCoordinates(Model):
    """A model of x = z·basis as a model of z."""

    model: Model
    basis: Float[Array, "r d"]

    def __call__(self, x: Float[Array, "n r"]) -> Scores:
        return self.model(x @ self.basis)


class Network(Model):
    """A model whose fields, except static ones, are named parameter groups."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the parameter groups."""
        return tuple(
            field.name
            for field in dataclasses.fields(self)
            if not field.metadata.get("static", False)
        )

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """Return the named parameter groups."""
        for name in groups:
            if name not in self.groups:
                raise unknown("parameter group", name, self.groups)
        return {name: getattr(self, name) for name in groups}

    def put(self, groups: dict[str, Any]) -> Self:
        """Return the network with the named parameter groups replaced."""
        result: Self = eqx.tree_at(
            lambda net: [getattr(net, name) for name in groups], self, list(groups.values())
        )
        return result


class Rotatable(Network):
    """A network that can be trained on coordinates of the inputs in a basis, with equal results."""

    @abstractmethod
    def enter(self, basis: Float[Array, "r d"]) -> Self:
        """Return the same network for inputs given by their coordinates in `basis`."""

    @abstractmethod
    def leave(self, basis: Float[Array, "r d"]) -> Self:
        """Return the network on the input space (the inverse of `enter`)."""


class HasNeurons(Network):
    """A network with accessible first-layer weights."""

    @property
    @abstractmethod
    def first_layer(self) -> Float[Array, "*s m r"]:
        """The first-layer weights, one row per neuron; coordinates if the network has a basis."""


class Smoothable(Network):
    """A network that can average exactly over Gaussian noise in its preactivations."""

    @abstractmethod
    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        """Return the scores of a batch; `smoothing` is the standard deviation of the noise."""


class SlopeBounded(Network):
    """A network with bounds on the derivatives of its score."""

    @abstractmethod
    def max_slopes(self, groups: tuple[str, ...], largest: Float[Array, ""]) -> dict[str, Any]:
        """Return a bound on the derivative of the score by each entry of these groups.

        It holds for all inputs with entries of absolute value at most `largest`.
        """


class SplitWeights(eqx.Module):
    """First-layer weights w = inside·basis + outside, with `outside` orthogonal to the basis.

    Inputs lie in the span of the basis, so the gradient of `outside` is zero. Only weight decay
    changes it.
    """

    inside: Float[Array, "m r"]
    outside: Float[Array, "m d"]

    @classmethod
    def of(cls, w: Float[Array, "m d"], basis: Float[Array, "r d"]) -> SplitWeights:
        inside = w @ basis.T
        return cls(inside, w - inside @ basis)

    def join(self, basis: Float[Array, "r d"]) -> Float[Array, "m d"]:
        """Return w."""
        return self.inside @ basis + self.outside


class Init(eqx.Module):
    """A distribution of initial networks."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of hidden neurons, for cost estimates."""

    @property
    def takes_shapes(self) -> bool:
        """Whether networks accept inputs with several axes, such as images, without flattening."""
        return False

    @abstractmethod
    def __call__(
        self, d: int | tuple[int, ...], *, outputs: int | None = None, key: PRNGKeyArray
    ) -> Network:
        """Draw a network for inputs of size or shape d; None is one output without an axis."""


def axes_of(outputs: int | None) -> tuple[int, ...]:
    """Return the axes that outputs add to an array."""
    return () if outputs is None else (outputs,)
