"""What is measured of a network that learns XOR: parts of its neurons, margins of the four
clusters, and the signal-heavy hypothesis.

A neuron splits as w = w_sig + w_opp + w_perp: w_sig along μ₁ where a > 0 and along μ₂ where a < 0,
w_opp along the other of the two, w_perp across both. The margin of a cluster is γ_μ = y(μ)·f(μ).

Reference: glasgow2023, Section 4 (Table 1), Definitions 4.2 and D.1, Lemma C.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.learners.base import Trace
from unlazy.learners.mean_field import second_layer
from unlazy.networks.base import Model
from unlazy.networks.two_layer import TwoLayer
from unlazy.probes.base import ModelProbe, Probe
from unlazy.tasks.base import Batch, Data
from unlazy.tasks.multi_index import XOR, MultiIndexTask

#: ζ is reported as a logarithm, which is cut here: without heavy neurons for every cluster no ζ
#: will do.
MOST = 12.0


class Parts(NamedTuple):
    """The neurons of a network seen from the clusters.

    `side` is the sign of ⟨w_sig, μ⟩, with μ = μ₁ or μ₂.
    """

    a: Float[Array, " p"]  # second layer in mean-field scaling
    signal: Float[Array, " p"]  # ‖w_sig‖
    opposite: Float[Array, " p"]  # ‖w_opp‖
    rest: Float[Array, " p"]  # ‖w_perp‖
    side: Float[Array, " p"]
    perpendicular: Float[Array, "p d"]  # w_perp

    @property
    def squared_norm(self) -> Float[Array, "*s p"]:
        """‖w‖²."""
        return self.signal**2 + self.opposite**2 + self.rest**2


def parts(task: Data, model: Model) -> Parts:
    """Split the neurons of a two-layer network on XOR."""
    if not isinstance(task, MultiIndexTask) or task.polynomial != XOR:
        raise BadInput("Signal and opposite parts are defined on XOR alone.")
    if not isinstance(model, TwoLayer):
        raise BadInput(f"Only two-layer networks have these parts, not {type(model).__name__}.")
    a, w, directions = second_layer(model), model.first_layer, task.features
    along = w @ directions.T  # p 2
    own = jnp.where(a > 0, along[:, 0], along[:, 1])
    other = jnp.where(a > 0, along[:, 1], along[:, 0])
    across = w - along @ directions
    return Parts(
        a, jnp.abs(own), jnp.abs(other), jnp.linalg.norm(across, axis=1), jnp.sign(own), across
    )


def clusters(task: MultiIndexTask) -> tuple[Float[Array, "4 d"], Float[Array, " 4"]]:
    """The cluster centres μ₁, −μ₁, μ₂, −μ₂ and their labels."""
    first, second = math.sqrt(2) * task.features
    return jnp.stack([first, -first, second, -second]), jnp.array([1.0, 1.0, -1.0, -1.0])


def cluster_of(neurons: Parts) -> Bool[Array, "4 p"]:
    """For each cluster, which neurons have their signal part towards it."""
    positive, ahead = neurons.a > 0, neurons.side > 0
    return jnp.stack([positive & ahead, positive & ~ahead, ~positive & ahead, ~positive & ~ahead])


class Portrait(ModelProbe):
    """The phase portrait: mean norms `signal`, `opposite`, `rest`; margins `margin_1` … `margin_4`
    of μ₁, −μ₁, μ₂, −μ₂ and their extremes.

    `not_signal` = mean of ‖w_opp + w_perp‖², `imbalance` = mean of ‖w‖² − a², `excess` = greatest
    |a| − ‖w‖ of a neuron, `size` = mean of ‖a·w‖. `heavy`: of the four clusters the least share of
    neurons whose signal part towards it is longer than all the rest of the neuron.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        neurons = parts(task, model)
        assert isinstance(task, MultiIndexTask)
        centres, labels = clusters(task)
        margins = labels * model(centres)
        norm = jnp.sqrt(neurons.squared_norm)
        heavy = neurons.signal**2 > neurons.opposite**2 + neurons.rest**2
        shares = jnp.mean(cluster_of(neurons) & heavy[None, :], axis=1)
        return {
            "signal": jnp.mean(neurons.signal),
            "opposite": jnp.mean(neurons.opposite),
            "rest": jnp.mean(neurons.rest),
            **{f"margin_{i + 1}": margins[i] for i in range(4)},
            "margin_least": jnp.min(margins),
            "margin_greatest": jnp.max(margins),
            "not_signal": jnp.mean(neurons.opposite**2 + neurons.rest**2),
            "imbalance": jnp.mean(neurons.squared_norm - neurons.a**2),
            "excess": jnp.max(jnp.abs(neurons.a) - norm),
            "size": jnp.mean(jnp.abs(neurons.a) * norm),
            "heavy": jnp.min(shares),
        }


class SignalHeavy(ModelProbe):
    """The signal-heavy hypothesis: the least ζ for which the network meets it, as `log10_zeta`, and
    `H`; `zeta_met` = ζ·e^{10H} ≤ 1 is asked.

    A set S of neurons with `weight`·‖w_perp‖ + ‖w_opp‖ ≤ ζ·‖w_sig‖ must leave E[1(w ∉ S)·‖w‖²] ≤
    ζ·γ̃_min, where γ̃_μ is the margin that the neurons of S towards μ make, and E‖w‖² ≤ E a² + ζH ≤
    2H. H is the least number ≥ 1 that allows it, E‖w‖²/2.

    Deviation: the definition has the weight e^{6H}, which no network of feasible size can meet;
    `log10_zeta_plain` has weight 1 instead.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        neurons = parts(task, model)
        H = jnp.maximum(1.0, jnp.mean(neurons.squared_norm) / 2)
        literal, plain = (
            least_zeta(neurons, jnp.exp(6 * H), H),
            least_zeta(neurons, jnp.ones(()), H),
        )
        return {
            "log10_zeta": literal,
            "log10_zeta_plain": plain,
            "H": H,
            "zeta_met": jnp.exp(math.log(10) * literal + 10 * H),
        }


def least_zeta(neurons: Parts, weight: Float[Array, ""], H: Float[Array, ""]) -> Float[Array, ""]:
    """log₁₀ of the least ζ of the signal-heavy definition, at most `MOST`: S is always a set of
    neurons with the smallest ratios.
    """
    ratio = (weight * neurons.rest + neurons.opposite) / jnp.maximum(
        neurons.signal, jnp.finfo(neurons.signal.dtype).tiny
    )
    order = jnp.argsort(ratio)
    inside = jnp.cumsum(neurons.squared_norm[order]) / len(order)
    outside = jnp.mean(neurons.squared_norm) - inside
    pulls = (jnp.abs(neurons.a) * math.sqrt(2) * neurons.signal)[None, order]
    towards = jnp.where(cluster_of(neurons)[:, order], pulls, 0)
    margin = jnp.min(jnp.cumsum(towards, axis=1), axis=0) / len(order)
    drift = (jnp.mean(neurons.squared_norm) - jnp.mean(neurons.a**2)) / H
    needed = jnp.maximum(
        jnp.maximum(ratio[order], drift), jnp.maximum(outside, 0) / jnp.maximum(margin, 1e-30)
    )
    return jnp.minimum(jnp.log10(jnp.maximum(jnp.min(needed), 1e-12)), MOST)


class ErrorRate(Probe):
    """`error`: share of wrong labels among `test` fresh examples. Cheaper than `Performance`, which
    also looks at the training examples.

    `test_loss` is the paper's loss 2·log(1 + e^{−y·f}).
    """

    test: int = eqx.field(static=True, default=4096)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        z, y = _drawn(task, self.test, key)
        result: dict[str, Array] = _judged(y[None, :] * trace.models.scores(z, task.basis))
        return result


_drawn = eqx.filter_jit(lambda task, n, key: task.draw(n, key))


@jax.jit
def _judged(margin: Float[Array, "s n"]) -> dict[str, Array]:
    wrong = jnp.where(jnp.isfinite(margin), margin <= 0, True)
    return {
        "error": jnp.mean(wrong, axis=1),
        "test_loss": 2 * jnp.mean(jnp.logaddexp(0, -margin), axis=1),
    }
