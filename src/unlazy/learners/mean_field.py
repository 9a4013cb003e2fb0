"""Two-layer ReLU networks in mean-field scaling, trained by minibatch SGD on fresh examples.

    f(x) = (1/p)·Σ_j a_j·relu(⟨w_j, x⟩),   w_j uniform on the sphere of radius θ,   a_j = ±‖w_j‖,
    w ← w − η·p·∂L/∂w,   a ← a − η·p·∂L/∂a,   L = mean over the minibatch of 2·log(1 + e^{−y·f})

`TwoLayer` holds a_j/p as its second layer, and the library's logistic loss is half of the paper's. With α = a/p the same steps are
w ← w − 2ηp·∂ℓ/∂w and α ← α − (2η/p)·∂ℓ/∂α: p and 2 are absorbed in the step sizes, and nothing else differs.

`width` = p, `radius` = θ, `step` = η, `batch` = m.

Reference: glasgow2023, Section 2.2.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.errors import require
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks import Init, TwoLayer
from unlazy.random import normal, signs


class SphereInit(Init):
    """p neurons uniform on the sphere of radius θ, with second-layer weights ±‖w‖/p.

    With `bias` the sphere has one dimension more, and the last coordinate is the neuron's bias: an input with a constant coordinate 1.

    Deviation: Theorem 3.1 prints the radius θ/√p, Lemma C.1 and Section 2.2 the radius θ, which fits the mean-field scaling and is used.
    """

    p: int = eqx.field(static=True, kw_only=True)
    radius: float = eqx.field(converter=float, kw_only=True)
    bias: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse what is no network."""
        require(isinstance(self.p, int) and self.p > 0, f"p must be a positive whole number of neurons, but is {self.p!r}.")
        require(0 < self.radius < math.inf, f"radius must be a finite number > 0, but is {self.radius}.")

    @property
    def width(self) -> int:
        """p neurons."""
        return self.p

    def __call__(self, d: int, *, key: PRNGKeyArray) -> TwoLayer:
        """Draw directions and signs."""
        key_w, key_a = jax.random.split(key)
        v = normal(key_w, (self.p, d + self.bias))
        v = self.radius * v / jnp.linalg.norm(v, axis=1, keepdims=True)
        a = signs(key_a, (self.p,)) * self.radius / self.p
        return TwoLayer(v[:, :d], v[:, d] if self.bias else jnp.zeros(self.p), a, jnp.zeros(()), "relu")


def mean_field_sgd(
    *,
    width: int,
    batch: int,
    radius: float = 0.3,
    step: float = 0.5,
    bias: bool = False,
    freeze_second: bool = False,
    steps: int | None = None,
    record: tuple[int, ...] = (),
) -> GradientDescent:
    """The learner: one pass over fresh minibatches of `batch` examples, or `steps` of them.

    `freeze_second` trains the first layer alone; `bias` adds a constant coordinate to the inputs.
    """
    rates = {"w": 2 * step * width}
    if bias:
        rates["b"] = 2 * step * width
    if not freeze_second:
        rates["a"] = 2 * step / width
    stage = Descent(rates, steps=steps, batch=batch, loss="logistic")
    return GradientDescent(SphereInit(p=width, radius=radius, bias=bias), (stage,), record=record, fresh=True)


def second_layer(model: TwoLayer) -> Float[Array, " p"]:
    """The paper's a_j = p times the weights that `TwoLayer` holds."""
    return model.a * len(model.a)
