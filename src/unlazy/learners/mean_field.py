"""Two-layer ReLU networks in mean-field scaling, trained by minibatch SGD on fresh examples.

    f(x) = (1/p)·Σ_j a_j·relu(⟨w_j, x⟩),   w_j uniform on the sphere of radius θ,   a_j = ±‖w_j‖,
    w ← w − η·p·∂L/∂w,   a ← a − η·p·∂L/∂a,   L = mean over the minibatch of 2·log(1 + e^{−y·f})

The second layer of `TwoLayer` is α = a/p, and our logistic loss ℓ is half of the paper's. So the
same steps are w ← w − 2ηp·∂ℓ/∂w and α ← α − (2η/p)·∂ℓ/∂α.

`width` = p, `radius` = θ, `step` = η, `batch` = m. In `MeanFieldSGD`, m depends on the dimension.

Reference: glasgow2023, Section 2.2.
"""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.metrics import Outputs
from unlazy.learners.base import Learner, Trace
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks import SphereInit, TwoLayer
from unlazy.tasks.base import Family, Sampler


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
    """Return a learner with one pass over fresh minibatches of `batch` examples, or `steps` steps.

    `freeze_second` trains only the first layer. `bias` adds a constant coordinate to the inputs.
    """
    rates = {"w": 2 * step * width}
    if bias:
        rates["b"] = 2 * step * width
    if not freeze_second:
        rates["a"] = 2 * step / width
    stage = Descent(rates, steps=steps, batch=batch, loss="logistic")
    return GradientDescent(
        SphereInit(p=width, radius=radius, bias=bias),
        (stage,),
        record=record,
        source=FreshGradients(),
    )


class MeanFieldSGD(Learner):
    """`mean_field_sgd` with batch size ratio·d in d dimensions, for labels ±1."""

    width: int = eqx.field(static=True, default=128, kw_only=True)
    ratio: float = eqx.field(converter=float, default=1.0, kw_only=True)
    radius: float = eqx.field(converter=float, default=0.3, kw_only=True)
    step: float = eqx.field(converter=float, default=0.5, kw_only=True)
    bias: bool = eqx.field(static=True, default=False, kw_only=True)
    freeze_second: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def draws_fresh(self) -> bool:
        return True

    def suits(self, outputs: Outputs) -> bool:
        return outputs.kind == "signs"

    def suited(self, family: Family) -> Learner:
        return self.on(family.dimension)

    def on(self, d: int) -> GradientDescent:
        """Return the learner in d dimensions."""
        return mean_field_sgd(
            width=self.width,
            batch=max(1, round(self.ratio * d)),
            radius=self.radius,
            step=self.step,
            bias=self.bias,
            freeze_second=self.freeze_second,
        )

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        return self.on(sampler.dimension).fit(sampler, n, key=key)


def second_layer(model: TwoLayer) -> Float[Array, " p"]:
    """Return the paper's a_j, which is p times `model.a`."""
    return model.a * len(model.a)
