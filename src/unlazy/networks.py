"""Networks: callable pytrees `model(x) -> scores`, whose fields are the parameter groups that learners name."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal, Self, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import require, unknown
from unlazy.random import normal

Activation = Literal["relu", "truncated_relu"]
#: Of one output without an axis for it, or of several.
Scores = Float[Array, " n"] | Float[Array, "n o"]


def _normal_cdf(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Φ(u) to absolute rounding error. `jax.scipy.stats.norm.cdf` is also exact in the far tail, at a multiple of the cost."""
    return 0.5 * (1 + jax.lax.erf(u * math.sqrt(0.5)))


@jax.custom_jvp
def smooth_ramp(z: Float[Array, "..."], s: float | Float[Array, ""]) -> Float[Array, "..."]:
    """E max(z + ξ, 0) for ξ ~ N(0, s²): s·h(z/s) with h(u) = u·Φ(u) + φ(u). Its slope in z is Φ(z/s)."""
    u = z / s
    return s * (u * _normal_cdf(u) + jax.scipy.stats.norm.pdf(u))


@smooth_ramp.defjvp
def _smooth_ramp_jvp(primals: Any, tangents: Any) -> Any:
    # Written out because automatic differentiation adds uφ(u) − uφ(u): slower, and a difference of rounding errors.
    (z, s), (dz, ds) = primals, tangents
    u = z / s
    return smooth_ramp(z, s), _normal_cdf(u) * dz + jax.scipy.stats.norm.pdf(u) * ds


def activate(z: Float[Array, "..."], kind: Activation, smoothing: float | Float[Array, ""] | None) -> Float[Array, "..."]:
    """σ(z), or exactly E σ(z + ξ) for Gaussian ξ of standard deviation `smoothing`.

    The truncated ReLU min(1, max(z, 0)) is the ramp at 0 minus the ramp at 1.
    """
    if smoothing is None:
        return jnp.clip(z, 0, 1) if kind == "truncated_relu" else jax.nn.relu(z)
    ramp = smooth_ramp(z, smoothing)
    return ramp - smooth_ramp(z - 1, smoothing) if kind == "truncated_relu" else ramp


class Model(eqx.Module):
    """What learning leads to: a callable that gives scores. Anything that predicts can be one."""

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"]) -> Scores:
        """Scores of a batch."""

    def enter(self, basis: Float[Array, "r d"]) -> Model:
        """The same model for inputs given by their coordinates in `basis`; a model that can do so more cheaply says how."""
        return OnCoordinates(self, basis)

    def at(self, index: int) -> Self:
        """Of models stacked over their first axis, as a `Trace` holds them, one."""
        stacked, rest = eqx.partition(self, eqx.is_array)
        return eqx.combine(jax.tree.map(lambda leaf: leaf[index], stacked), rest)

    def scores(self, x: Float[Array, "n d"]) -> Float[Array, "s n"]:
        """Of stacked models, the scores of each."""
        stacked, rest = eqx.partition(self, eqx.is_array)
        return jax.lax.map(lambda one: eqx.combine(one, rest)(x), stacked)


class OnCoordinates(Model):
    """A model of x = z·basis as a model of z."""

    model: Model
    basis: Float[Array, "r d"]

    def __call__(self, x: Float[Array, "n r"]) -> Scores:
        """Scores of a batch of coordinates."""
        return self.model(x @ self.basis)


class Network(Model):
    """Base of the networks.

    `enter` and `leave` change between the input space and coordinates in a basis of the inputs; `get` and `put` read and replace
    parameter groups by name.
    """

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None) -> Scores:
        """Scores of a batch; `smoothing` is the standard deviation of Gaussian noise averaged over inside each neuron."""

    @abstractmethod
    def enter(self, basis: Float[Array, "r d"]) -> Self:
        """The same network for inputs given by their coordinates in `basis`."""

    @abstractmethod
    def leave(self, basis: Float[Array, "r d"]) -> Self:
        """Undo `enter`: the network on the input space."""

    @abstractmethod
    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """The named parameter groups."""

    @abstractmethod
    def put(self, groups: dict[str, Any]) -> Self:
        """The network with the named parameter groups replaced."""

    @property
    @abstractmethod
    def first_layer(self) -> Float[Array, "m r"]:
        """First-layer weights as they act on the inputs, one neuron a row: by coordinates where the network has entered a basis."""


class SplitWeights(eqx.Module):
    """First-layer weights as coordinates in a basis of the inputs plus the orthogonal rest, w = inside·basis + outside.

    Inputs lie in the span of the basis, so `outside` never gets a gradient; only decay moves it.
    """

    inside: Float[Array, "m r"]
    outside: Float[Array, "m d"]


class TwoLayer(Network):
    """g(x) = Σ_i a_i σ(⟨w_i, x⟩ + b_i) + c. Groups: w, b, a, c. With `a` of shape (m, o) and `c` of shape (o,) it has o outputs."""

    w: Float[Array, "m d"] | SplitWeights
    b: Float[Array, " m"]
    a: Float[Array, " m"] | Float[Array, "m o"]
    c: Float[Array, ""] | Float[Array, " o"]
    activation: Activation = eqx.field(static=True, default="truncated_relu")

    @property
    def first_layer(self) -> Float[Array, "m r"]:
        """First-layer weights as they act on the inputs."""
        return self.w.inside if isinstance(self.w, SplitWeights) else self.w

    def hidden(self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None) -> Float[Array, "n m"]:
        """Outputs of the hidden neurons: the features on which the second layer is linear."""
        return activate(x @ self.first_layer.T + self.b, self.activation, smoothing)

    def __call__(self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None) -> Scores:
        """Scores of a batch."""
        return self.hidden(x, smoothing=smoothing) @ self.a + self.c

    def enter(self, basis: Float[Array, "r d"]) -> TwoLayer:
        """Split the first layer into coordinates and rest."""
        assert not isinstance(self.w, SplitWeights)
        inside = self.w @ basis.T
        return eqx.tree_at(lambda net: net.w, self, SplitWeights(inside, self.w - inside @ basis))

    def leave(self, basis: Float[Array, "r d"]) -> TwoLayer:
        """Join coordinates and rest."""
        assert isinstance(self.w, SplitWeights)
        return eqx.tree_at(lambda net: net.w, self, self.w.inside @ basis + self.w.outside)

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """The named groups among w, b, a, c."""
        for name in groups:
            if name not in ("w", "b", "a", "c"):
                raise unknown("parameter group", name, ("w", "b", "a", "c"))
        return {name: getattr(self, name) for name in groups}

    def put(self, groups: dict[str, Any]) -> TwoLayer:
        """The network with the named groups replaced."""
        return eqx.tree_at(lambda net: [getattr(net, name) for name in groups], self, list(groups.values()))


class Linearised(Network):
    """First-order Taylor model of a network in its parameters: f(x) = g₀(x) + ⟨∇g₀(x), delta⟩. Only `delta` is trained.

    Its features ∇g₀(x) are fixed at `base`: this is the finite-width tangent model, whose kernel is the NTK of `base`.
    """

    base: TwoLayer
    delta: TwoLayer

    def __call__(self, x: Float[Array, "n d"], *, smoothing: float | Float[Array, ""] | None = None) -> Scores:
        """Scores of a batch, by one forward-mode derivative."""
        base = jax.lax.stop_gradient(self.base)
        value, slope = jax.jvp(lambda net: net(x, smoothing=smoothing), (base,), (self.delta,))
        return value + slope

    def enter(self, basis: Float[Array, "r d"]) -> Linearised:
        """Split both first layers."""
        return Linearised(self.base.enter(basis), self.delta.enter(basis))

    def leave(self, basis: Float[Array, "r d"]) -> Linearised:
        """Join both first layers."""
        return Linearised(self.base.leave(basis), self.delta.leave(basis))

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """The named groups of the displacement."""
        return self.delta.get(groups)

    def put(self, groups: dict[str, Any]) -> Linearised:
        """The tangent model with parts of the displacement replaced."""
        return Linearised(self.base, self.delta.put(groups))

    @property
    def first_layer(self) -> Float[Array, "m r"]:
        """The neurons that make the features: those of `base`, which never move."""
        return self.base.first_layer


class Init(eqx.Module):
    """A law of initial networks."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of hidden neurons."""

    @abstractmethod
    def __call__(self, d: int, *, key: PRNGKeyArray) -> Network:
        """Draw a network for inputs of size d."""


class MirroredInit(Init):
    """2m neurons in mirrored pairs, so that the initial network is exactly zero.

    w_i ~ N(0, w_scale²·I), b_i ~ N(0, b_scale²), a_i ~ N(0, a_scale²) for i ≤ m; then w_{m+i} = w_i, b_{m+i} = b_i, a_{m+i} = −a_i.

    Reference: shi2022, Section 3.1.
    """

    m: int = eqx.field(static=True, kw_only=True)
    w_scale: float = eqx.field(converter=float, kw_only=True)
    b_scale: float = eqx.field(converter=float, kw_only=True)
    a_scale: float = eqx.field(converter=float, kw_only=True)
    activation: Activation = eqx.field(static=True, default="truncated_relu", kw_only=True)

    def __check_init__(self) -> None:
        """Refuse sizes and scales that make no network."""
        known = get_args(Activation)
        require(self.activation in known, f"activation must be one of {', '.join(known)}, but is {self.activation!r}.")
        require(
            isinstance(self.m, int) and self.m > 0,
            f"m must be a positive whole number of neuron pairs, but is {self.m!r}.",
        )
        for name in ("w_scale", "b_scale", "a_scale"):
            value = getattr(self, name)
            require(
                0 <= value < math.inf,
                f"{name} is a standard deviation and must be a finite number ≥ 0, but is {value}.",
            )

    @property
    def width(self) -> int:
        """2m neurons."""
        return 2 * self.m

    def __call__(self, d: int, *, key: PRNGKeyArray) -> TwoLayer:
        """Draw m neurons and mirror them."""
        key_w, key_b, key_a = jax.random.split(key, 3)
        w = self.w_scale * normal(key_w, (self.m, d))
        b = self.b_scale * normal(key_b, (self.m,))
        a = self.a_scale * normal(key_a, (self.m,))
        return TwoLayer(jnp.concatenate([w, w]), jnp.concatenate([b, b]), jnp.concatenate([a, -a]), jnp.zeros(()), self.activation)


class TangentInit(Init):
    """The tangent model of a network drawn from `of`, at displacement zero."""

    of: MirroredInit

    @property
    def width(self) -> int:
        """As many neurons as the network has."""
        return self.of.width

    def __call__(self, d: int, *, key: PRNGKeyArray) -> Linearised:
        """Draw the network and linearise it where it stands."""
        base = self.of(d, key=key)
        return Linearised(base, jax.tree.map(jnp.zeros_like, base))
