"""Stacked MNIST digits with the settings of the authors' program: a network, its gated
linearization, and random features.

    x: k images side by side, pixels in [0, 1];  y = ±1: parity of the sum of the digits
    q neurons, hinge loss, Adadelta, batches of 128, 20 epochs of 60,000 new combinations

Reference: the authors' repository emalach/ParityNN (daniely2020; not in the text that was read).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require, require_one_of, require_whole
from unlazy.core.random import normal
from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.readings import Reading
from unlazy.lab.rules import Scale, arm, arms, shuffled
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.base import Init, Network, Scores
from unlazy.probes.performance import Performance
from unlazy.tasks.images.families import StackedDigits, StackedTask

#: Hidden layers: trained ReLU neurons; trained linear neurons with fixed random gates; fixed ReLU
#: neurons; fixed cosines of Gaussian weights.
Hidden = Literal["relu", "gated", "fixed relu", "fixed cosine"]
#: Decay rate of the averages and ε of Adadelta in the authors' library.
RHO, EPSILON = 0.95, 1e-7


class RawDigits(StackedDigits):
    """Stacked digits with pixels in [0, 1], not standardized."""

    def task(self, *, key: PRNGKeyArray) -> StackedTask:
        task = super().task(key=key)
        zero = np.zeros_like(task.pool.mean)
        result: StackedTask = eqx.tree_at(
            lambda one: (one.pool.mean, one.pool.spread), task, (zero, zero + 1)
        )
        return result


class HiddenLayer(Network):
    """g(x) = Σ_i a_i h_i(x) + c with h_i = σ(⟨w_i, x⟩ + b_i), or a gated linear h_i.

    Groups: w, b, a, c, gate. Gated: h_i = 1{⟨gate_i, x⟩ > 0}·(⟨w_i, x⟩ + b_i).
    """

    w: Float[Array, "m d"]
    b: Float[Array, " m"]
    a: Float[Array, " m"]
    c: Float[Array, ""]
    gate: Float[Array, "g d"]
    kind: Hidden = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Scores:
        h = x @ self.w.T + self.b[None, :]
        if self.kind == "gated":
            h = jnp.where(x @ self.gate.T > 0, h, 0.0)
        else:
            h = jnp.cos(h) if self.kind == "fixed cosine" else jax.nn.relu(h)
        return h @ self.a + self.c[None]


class HiddenInit(Init):
    """`HiddenLayer` with m neurons from the default initialization of the authors' library.

    Weights are uniform in ±√(6/(inputs + outputs)) of their layer, biases 0. Cosines have weights
    N(0, 16/d) and biases uniform in [0, 2π].
    """

    m: int = eqx.field(static=True, kw_only=True)
    kind: Hidden = eqx.field(static=True, kw_only=True)

    def __check_init__(self) -> None:
        require_whole("m", self.m, "neurons")
        require_one_of("kind", self.kind, get_args(Hidden))

    @property
    def width(self) -> int:
        return self.m * (2 if self.kind == "gated" else 1)

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> HiddenLayer:
        require(outputs is None, "HiddenInit supports exactly one output.")
        key_w, key_b, key_a, key_gate = jax.random.split(key, 4)

        def uniform(key: PRNGKeyArray, shape: tuple[int, ...], limit: float) -> Array:
            drawn = jax.random.uniform(key, shape, jnp.float32, -limit, limit)
            return drawn.astype(jnp.result_type(float))

        limit = math.sqrt(6 / (d + self.m))
        w, b = uniform(key_w, (self.m, d), limit), jnp.zeros(self.m)
        if self.kind == "fixed cosine":
            w = 4 / math.sqrt(d) * normal(key_w, (self.m, d))
            b = uniform(key_b, (self.m,), math.pi) + math.pi
        gates = self.m if self.kind == "gated" else 0
        a = uniform(key_a, (self.m,), math.sqrt(6 / (self.m + 1)))
        return HiddenLayer(w, b, a, jnp.zeros(()), uniform(key_gate, (gates, d), limit), self.kind)


class AdadeltaDescent(Descent):
    """`Descent` whose direction is that of Adadelta (Zeiler 2012)."""

    @property
    def commutes_with_rotations(self) -> bool:
        return False

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        return optax.scale_by_adadelta(rho=RHO, eps=EPSILON)


class StackedSizes(NamedTuple):
    """Digits k, pixels per side, neurons q, epochs, examples per epoch, and test examples."""

    k: int
    side: int | None
    q: int
    epochs: int
    examples: int
    test: int


SIZES: dict[Scale, StackedSizes] = {
    "smoke": StackedSizes(3, 7, 16, 2, 256, 100),
    "laptop": StackedSizes(3, 14, 256, 8, 60_000, 10_000),
    "paper": StackedSizes(3, None, 512, 20, 60_000, 10_000),
}
BATCH = 128
NETWORK = "ReLU network"
#: Names of the methods, as in the authors' figure.
METHODS: dict[str, Hidden] = {
    NETWORK: "relu",
    "NTK regime": "gated",
    "ReLU features": "fixed relu",
    "Gaussian features": "fixed cosine",
}
OTHERS = tuple(name for name in METHODS if name != NETWORK)

READINGS = (
    Reading(
        "rate 1",
        "the program leaves the step size of Adadelta to its library; 1 is the method's own value, "
        "and the library's default before version 1.14",
    ),
    Reading(
        "rate 0.001",
        "the library's default since version 1.14 (July 2019)",
        {"rate": 1e-3},
    ),
)


def stacked(scale: Scale, rate: float = 1.0) -> dict[str, StudyArm]:
    """Return the four methods on new combinations of training images at every step."""
    size = SIZES[scale]
    family = RawDigits("mnist", k=size.k, side=size.side)
    steps = size.examples // BATCH * size.epochs
    record = tuple(size.examples // BATCH * epoch for epoch in range(1, size.epochs))

    def method(kind: Hidden) -> Arm:
        trained = ("a", "c") if kind.startswith("fixed") else ("w", "b", "a", "c")
        descent = AdadeltaDescent(
            dict.fromkeys(trained, rate), steps=steps, batch=BATCH, loss="hinge"
        )
        learner = GradientDescent(
            HiddenInit(m=size.q, kind=kind), (descent,), record=record, source=FreshGradients()
        )
        return Arm(family, learner, steps * BATCH, (Performance(size.test),))

    return {name: method(kind) for name, kind in METHODS.items()}


net = arm(NETWORK)
STACKED = Claim(
    id="daniely2020/stacked-digits",
    where="stacked MNIST digits, authors' program parity_for_nips.py",
    kind="figure",
    statement=(
        "On the parity of k = 3 stacked MNIST digits, a network of q = 512 ReLU neurons trained by "
        "Adadelta on the hinge loss reaches a higher test accuracy in 20 epochs than the same "
        "network with fixed random gates (NTK regime), fixed ReLU features and fixed Gaussian "
        "features."
    ),
    study=stacked,
    checks=tuple(net.test_accuracy - other.test_accuracy >= 5.0 for other in arms(*OTHERS)),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    control=shuffled(stacked),
    readings=READINGS,
    plots=(
        Plot(
            title="Parity of stacked digits",
            x="steps",
            y="test accuracy (%)",
            series=tuple(PlotLine(name, "test_accuracy", name) for name in METHODS),
        ),
    ),
    **notes("daniely2020/stacked-digits"),
)
