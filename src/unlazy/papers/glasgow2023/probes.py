"""Probes of a network on XOR: components of neurons, cluster margins, signal-heavy hypothesis.

A neuron decomposes as w = w_sig + w_opp + w_perp: w_sig along μ₁ if a > 0 and along μ₂ if a < 0,
w_opp along the other one, w_perp orthogonal to both. The margin of a cluster is γ_μ = y(μ)·f(μ).

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

#: Maximum log₁₀ ζ; without heavy neurons for every cluster there is no admissible ζ.
MAX_LOG10_ZETA = 12.0


class Parts(NamedTuple):
    """Components of the neurons of a network.

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
    """Return the components of the neurons of a two-layer network on XOR."""
    if not isinstance(task, MultiIndexTask) or task.polynomial != XOR:
        raise BadInput("Signal and opposite components are defined for XOR only.")
    if not isinstance(model, TwoLayer):
        raise BadInput(f"The model must be a two-layer network, got {type(model).__name__}.")
    a, w, directions = second_layer(model), model.first_layer, task.features
    along = w @ directions.T  # p 2
    own = jnp.where(a > 0, along[:, 0], along[:, 1])
    other = jnp.where(a > 0, along[:, 1], along[:, 0])
    perpendicular = w - along @ directions
    return Parts(
        a,
        jnp.abs(own),
        jnp.abs(other),
        jnp.linalg.norm(perpendicular, axis=1),
        jnp.sign(own),
        perpendicular,
    )


def clusters(task: MultiIndexTask) -> tuple[Float[Array, "4 d"], Float[Array, " 4"]]:
    """Return the cluster centers μ₁, −μ₁, μ₂, −μ₂ and their labels."""
    first, second = math.sqrt(2) * task.features
    return jnp.stack([first, -first, second, -second]), jnp.array([1.0, 1.0, -1.0, -1.0])


def cluster_of(neurons: Parts) -> Bool[Array, "4 p"]:
    """Return for each cluster which neurons have their signal component toward it."""
    positive, plus = neurons.a > 0, neurons.side > 0
    return jnp.stack([positive & plus, positive & ~plus, ~positive & plus, ~positive & ~plus])


class Portrait(ModelProbe):
    """Mean component norms and cluster margins.

    `signal`, `opposite`, `rest`: mean norms of w_sig, w_opp, w_perp. `margin_1` … `margin_4`:
    margins of μ₁, −μ₁, μ₂, −μ₂; `margin_least`, `margin_greatest`: their extremes. `not_signal`:
    E‖w_opp + w_perp‖². `imbalance`: E[‖w‖² − a²]. `excess`: maximum |a| − ‖w‖. `size`: E‖a·w‖.
    `heavy`: minimum over clusters of the fraction of neurons with ‖w_sig‖ toward the cluster and
    larger than ‖w_opp + w_perp‖.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        neurons = parts(task, model)
        assert isinstance(task, MultiIndexTask)
        centers, labels = clusters(task)
        margins = labels * model(centers)
        norm = jnp.sqrt(neurons.squared_norm)
        heavy = neurons.signal**2 > neurons.opposite**2 + neurons.rest**2
        fractions = jnp.mean(cluster_of(neurons) & heavy[None, :], axis=1)
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
            "heavy": jnp.min(fractions),
        }


class SignalHeavy(ModelProbe):
    """Minimum ζ for which the network satisfies the signal-heavy hypothesis, as `log10_zeta`.

    A set S of neurons with weight·‖w_perp‖ + ‖w_opp‖ ≤ ζ·‖w_sig‖ must satisfy E[1(w ∉ S)·‖w‖²] ≤
    ζ·γ̃_min, where γ̃_μ is the margin of the neurons of S toward μ, and E‖w‖² ≤ E a² + ζH ≤ 2H.
    `H` = max(1, E‖w‖²/2). `zeta_met` = ζ·e^{10H}, which the definition requires to be at most 1.

    Deviation: the definition has weight e^{6H}, which no network of feasible size satisfies;
    `log10_zeta_plain` has weight 1 instead.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        neurons = parts(task, model)
        H = jnp.maximum(1.0, jnp.mean(neurons.squared_norm) / 2)
        literal, plain = (
            min_zeta(neurons, jnp.exp(6 * H), H),
            min_zeta(neurons, jnp.ones(()), H),
        )
        return {
            "log10_zeta": literal,
            "log10_zeta_plain": plain,
            "H": H,
            "zeta_met": jnp.exp(math.log(10) * literal + 10 * H),
        }


def min_zeta(neurons: Parts, weight: Float[Array, ""], H: Float[Array, ""]) -> Float[Array, ""]:
    """Return log₁₀ of the minimum ζ of the signal-heavy definition, at most `MAX_LOG10_ZETA`.

    The optimal S consists of the neurons with the smallest ratios.
    """
    ratio = (weight * neurons.rest + neurons.opposite) / jnp.maximum(
        neurons.signal, jnp.finfo(neurons.signal.dtype).tiny
    )
    order = jnp.argsort(ratio)
    inside = jnp.cumsum(neurons.squared_norm[order]) / len(order)
    outside = jnp.mean(neurons.squared_norm) - inside
    contributions = (jnp.abs(neurons.a) * math.sqrt(2) * neurons.signal)[None, order]
    toward = cluster_of(neurons)[:, order] * contributions
    margin = jnp.min(jnp.cumsum(toward, axis=1), axis=0) / len(order)
    drift = (jnp.mean(neurons.squared_norm) - jnp.mean(neurons.a**2)) / H
    needed = jnp.maximum(
        jnp.maximum(ratio[order], drift), jnp.maximum(outside, 0) / jnp.maximum(margin, 1e-30)
    )
    return jnp.minimum(jnp.log10(jnp.maximum(jnp.min(needed), 1e-12)), MAX_LOG10_ZETA)


class ErrorRate(Probe):
    """Test error and loss on `test` fresh examples; cheaper than `Performance`.

    `error`: fraction of misclassified examples. `test_loss`: mean of 2·log(1 + e^{−y·f}), the
    paper's loss.
    """

    test: int = eqx.field(static=True, default=4096)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        z, y = _drawn(task, self.test, key)
        result: dict[str, Array] = _error_and_loss(y[None, :] * trace.models.scores(z, task.basis))
        return result


_drawn = eqx.filter_jit(lambda task, n, key: task.draw(n, key))


@jax.jit
def _error_and_loss(margin: Float[Array, "s n"]) -> dict[str, Array]:
    wrong = jnp.where(jnp.isfinite(margin), margin <= 0, True)
    return {
        "error": jnp.mean(wrong, axis=1),
        "test_loss": 2 * jnp.mean(jnp.logaddexp(0, -margin), axis=1),
    }
