"""Adapters for Equinox modules, and for vector networks on inputs with several axes.

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
    """An Equinox module as a network.

    Groups: the top-level fields with floating-point arrays, or "all" of them together. The module
    takes one input, or a batch if `batched`. A single output may have an axis of length 1.
    """

    trained: Any  # the module's floating-point arrays
    frozen: Any  # its other arrays
    rest: Any = eqx.field(static=True)  # everything else
    outputs: int | None = eqx.field(static=True, default=None)
    batched: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(cls, module: Any, *, outputs: int | None = None, batched: bool = False) -> Self:
        require(
            callable(module),
            f"A module must be callable, got {type(module).__name__}.",
        )
        trained, other = eqx.partition(module, eqx.is_inexact_array)
        frozen, rest = eqx.partition(other, eqx.is_array)
        require(
            bool(jax.tree.leaves(trained)),
            f"{type(module).__name__} has no floating-point arrays to train.",
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
            f"{type(module).__name__} must return scores of shape {expected}, got {score.shape}.",
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
            f"{WHOLE!r} includes all groups and cannot be combined with others.",
        )
        return {
            name: self.trained if name == WHOLE else getattr(self.trained, name) for name in groups
        }

    def put(self, groups: dict[str, Any]) -> Self:
        if WHOLE in groups:
            return dataclasses.replace(self, trained=groups[WHOLE])
        fields = lambda module: [getattr(module, name) for name in groups]  # noqa: E731
        trained = eqx.tree_at(
            fields, self.trained, list(groups.values()), is_leaf=lambda leaf: leaf is None
        )
        return dataclasses.replace(self, trained=trained)


class ModuleInit(Init):
    """Networks returned by `make(d, outputs, key=key)`.

    d is the input size, or the shape of inputs with several axes. `make` is a class or function
    defined in an importable module, or a `functools.partial` of one. It gets `outputs=1` for a
    single output. `neurons` is the approximate number of hidden neurons, for cost estimates.
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
    """A network of vectors applied to flattened inputs."""

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
    """Draw a network for inputs of a shape; networks of vectors get flattened inputs."""
    if len(shape) == 1 or init.takes_shapes:
        return init(shape[0] if len(shape) == 1 else shape, outputs=outputs, key=key)
    return OnVectors(init(math.prod(shape), outputs=outputs, key=key))
