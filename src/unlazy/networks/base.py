"""What a model is, what a network is, and what a network may be able to do beyond predicting.

A network is a callable pytree with named parameter groups. Taking inputs by coordinates
(`Rotatable`), showing its neurons (`HasNeurons`) and averaging over noise inside its neurons
(`Smoothable`) are capabilities, asked for where they are needed.
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

#: Of one output without an axis for it, or of several.
Scores = Float[Array, " n"] | Float[Array, "n o"]


class Model(eqx.Module):
    """What learning leads to: a callable that gives scores. Anything that predicts can be one.

    A trace holds models stacked over the first axis of their arrays, unless a class says by
    `stacked` that it keeps several in a way of its own; then it overrides `at` and `scores`.
    """

    stacked: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        """Scores of a batch."""

    def enter(self, basis: Float[Array, "r d"]) -> Model:
        """The same model for inputs given by their coordinates in `basis`; a model that can do so
        more cheaply says how.
        """
        return OnCoordinates(self, basis)

    def at(self, index: int) -> Self:
        """Of several models, as a `Trace` holds them, one."""
        stacked, rest = eqx.partition(self, eqx.is_array)
        result: Self = eqx.combine(jax.tree.map(lambda leaf: leaf[index], stacked), rest)
        return result

    def each(self, function: Callable[[Model], Any], count: int) -> Any:
        """What a function gives for each of `count` models, stacked.

        One model after the other: looking needs more memory than models.
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
        """Of several models, the scores of each on inputs x, or on inputs that x gives by
        coordinates in `basis`.
        """
        arrays, rest = eqx.partition(self, eqx.is_array)

        def one(arrays: Any) -> Any:
            model = eqx.combine(arrays, rest)
            return (model if basis is None else model.enter(basis))(x)

        result: Array = jax.lax.map(one, arrays)
        return result


class Predictor(Model):
    """Any function as a model: scores = function(parameters, x), such as `Predictor(lambda w, x: x
    @ w, w)`.
    """

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
    """A model whose fields are the parameter groups that learners name; static fields are no
    groups.
    """

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the parameter groups."""
        return tuple(
            field.name
            for field in dataclasses.fields(self)
            if not field.metadata.get("static", False)
        )

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """The named parameter groups."""
        for name in groups:
            if name not in self.groups:
                raise unknown("parameter group", name, self.groups)
        return {name: getattr(self, name) for name in groups}

    def put(self, groups: dict[str, Any]) -> Self:
        """The network with the named parameter groups replaced."""
        result: Self = eqx.tree_at(
            lambda net: [getattr(net, name) for name in groups], self, list(groups.values())
        )
        return result


class Rotatable(Network):
    """A network that can be trained on coordinates in a basis of the inputs, which is the same as
    training it on the inputs.
    """

    @abstractmethod
    def enter(self, basis: Float[Array, "r d"]) -> Self:
        """The same network for inputs given by their coordinates in `basis`."""

    @abstractmethod
    def leave(self, basis: Float[Array, "r d"]) -> Self:
        """Undo `enter`: the network on the input space."""


class HasNeurons(Network):
    """A network whose first layer can be looked at."""

    @property
    @abstractmethod
    def first_layer(self) -> Float[Array, "*s m r"]:
        """First-layer weights as they act on the inputs, one neuron a row: by coordinates where the
        network has entered a basis.
        """


class Smoothable(Network):
    """A network that can average over Gaussian noise inside its neurons, exactly."""

    @abstractmethod
    def __call__(
        self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None
    ) -> Scores:
        """Scores of a batch; `smoothing` is the standard deviation of the noise in each neuron."""


class SlopeBounded(Network):
    """A network that knows how large the slopes of its score can be."""

    @abstractmethod
    def max_slopes(self, groups: tuple[str, ...], largest: Float[Array, ""]) -> dict[str, Any]:
        """For each entry of these groups, a bound on the slope of the score on all inputs whose
        entries are at most `largest`.
        """


class SplitWeights(eqx.Module):
    """First-layer weights as coordinates in a basis of the inputs plus the orthogonal rest, w =
    inside·basis + outside.

    Inputs lie in the span of the basis, so `outside` never gets a gradient; only decay moves it.
    """

    inside: Float[Array, "m r"]
    outside: Float[Array, "m d"]

    @classmethod
    def of(cls, w: Float[Array, "m d"], basis: Float[Array, "r d"]) -> SplitWeights:
        inside = w @ basis.T
        return cls(inside, w - inside @ basis)

    def join(self, basis: Float[Array, "r d"]) -> Float[Array, "m d"]:
        """Undo the split."""
        return self.inside @ basis + self.outside


class Init(eqx.Module):
    """A law of initial networks."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of hidden neurons, for planning."""

    @property
    def takes_shapes(self) -> bool:
        """Whether its networks take inputs with several axes, such as images, as they are; else
        these are laid out as vectors.
        """
        return False

    @abstractmethod
    def __call__(
        self, d: int | tuple[int, ...], *, outputs: int | None = None, key: PRNGKeyArray
    ) -> Network:
        """Draw a network for inputs of size d (or of that shape) with so many outputs; None is one
        output without an axis for it.
        """


def axes_of(outputs: int | None) -> tuple[int, ...]:
    """The axes that outputs add to an array."""
    return () if outputs is None else (outputs,)
