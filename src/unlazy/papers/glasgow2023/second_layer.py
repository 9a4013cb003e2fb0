"""Initialization with a separate norm of the second layer.

Reference: glasgow2023, Remark 4.3.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from unlazy.core.errors import require
from unlazy.networks.base import Init
from unlazy.networks.inits import SphereInit
from unlazy.networks.two_layer import TwoLayer


class FixedSecondInit(Init):
    """First layer and signs of `sphere`, and |a_j| = `norm` for all neurons."""

    sphere: SphereInit
    norm: float = eqx.field(converter=float, default=1.0)

    def __check_init__(self) -> None:
        require(self.norm > 0, f"`norm` must be positive, got {self.norm}.")

    @property
    def width(self) -> int:
        return self.sphere.width

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        net = self.sphere(d, outputs=outputs, key=key)
        result: TwoLayer = eqx.tree_at(
            lambda each: each.a, net, net.a * (self.norm / self.sphere.radius)
        )
        return result
