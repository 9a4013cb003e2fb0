"""Networks of the user's own: any Equinox module that predicts, trained in the one loop.

ModuleInit(functools.partial(eqx.nn.MLP, width_size=64, depth=2))   with   Descent({"all": 0.1}, …)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require, unknown
from unlazy.networks.base import Init, Network, Scores

#: The group of all parameters together.
WHOLE = "all"


class ModuleNetwork(Network):
    """A module as a network. Groups: its top-level fields that hold floating point arrays, each by
    name; or "all" of them together.

    The module takes one input, or with `batched` a batch. One output may come with an axis of its
    own or without.
    """

    trained: Any  # the module with nothing but its floating point arrays
    frozen: Any  # with its other arrays
    rest: Any = eqx.field(static=True)  # and with all else
    outputs: int | None = eqx.field(static=True, default=None)
    batched: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(cls, module: Any, *, outputs: int | None = None, batched: bool = False) -> Self:
        require(
            callable(module),
            f"A module must be callable to be a network, but {type(module).__name__} is not.",
        )
        trained, other = eqx.partition(module, eqx.is_inexact_array)
        frozen, rest = eqx.partition(other, eqx.is_array)
        require(
            bool(jax.tree.leaves(trained)),
            f"{type(module).__name__} holds no floating point arrays: there is nothing to train.",
        )
        return cls(trained, frozen, rest, outputs, batched)

    @property
    def module(self) -> Any:
        """The user's module."""
        return eqx.combine(self.trained, self.frozen, self.rest)

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        module = self.module
        score: Array = module(x) if self.batched else jax.vmap(module)(x)
        if self.outputs is None and score.shape == (len(x), 1):
            score = score[:, 0]
        expected = (len(x),) if self.outputs is None else (len(x), self.outputs)
        require(
            score.shape == expected,
            f"{type(module).__name__} gives scores of shape {score.shape} where {expected} was "
            "expected.",
        )
        return score

    @property
    def groups(self) -> tuple[str, ...]:
        fields = dataclasses.fields(self.trained) if dataclasses.is_dataclass(self.trained) else ()
        return (
            *(
                field.name
                for field in fields
                if jax.tree.leaves(getattr(self.trained, field.name, None))
            ),
            WHOLE,
        )

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        for name in groups:
            if name not in self.groups:
                raise unknown("parameter group", name, self.groups)
        require(
            WHOLE not in groups or len(groups) == 1,
            f"{WHOLE!r} is all groups together: name it alone.",
        )
        return {
            name: self.trained if name == WHOLE else getattr(self.trained, name) for name in groups
        }

    def put(self, groups: dict[str, Any]) -> Self:
        if WHOLE in groups:
            return dataclasses.replace(self, trained=groups[WHOLE])
        places = lambda module: [getattr(module, name) for name in groups]  # noqa: E731
        trained = eqx.tree_at(
            places, self.trained, list(groups.values()), is_leaf=lambda leaf: leaf is None
        )
        return dataclasses.replace(self, trained=trained)


class ModuleInit(Init):
    """Networks that `make(d, outputs, key=key)` makes: d numbers in (or the shape of an input with
    several axes), so many numbers out.

    `make` is a class or a function of a module of yours, or a `functools.partial` of one. One
    output is asked for by `outputs=1`. `neurons`: roughly how many hidden neurons it has, for
    planning.
    """

    make: Callable[..., Any] = eqx.field(static=True)
    batched: bool = eqx.field(static=True, default=False, kw_only=True)
    neurons: int = eqx.field(static=True, default=100, kw_only=True)

    @property
    def width(self) -> int:
        return self.neurons

    @property
    def takes_shapes(self) -> bool:
        return True

    def __call__(
        self, d: int | tuple[int, ...], *, outputs: int | None = None, key: PRNGKeyArray
    ) -> ModuleNetwork:
        return ModuleNetwork.of(
            self.make(d, outputs or 1, key=key), outputs=outputs, batched=self.batched
        )


class OnVectors(Network):
    """A network of vectors on inputs with several axes, which are laid out as vectors."""

    network: Network

    def __call__(self, x: Float[Array, "n *d"], **options: Any) -> Scores:
        return self.network(x.reshape(len(x), math.prod(x.shape[1:])), **options)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.network.groups

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        return self.network.get(groups)

    def put(self, groups: dict[str, Any]) -> OnVectors:
        return OnVectors(self.network.put(groups))


def drawn_for(
    init: Init, shape: tuple[int, ...], *, outputs: int | None, key: PRNGKeyArray
) -> Network:
    """A network for inputs of a shape; one that knows vectors only sees inputs with several axes
    laid out.
    """
    if len(shape) == 1 or init.takes_shapes:
        return init(shape[0] if len(shape) == 1 else shape, outputs=outputs, key=key)
    return OnVectors(init(math.prod(shape), outputs=outputs, key=key))
