"""Classifier steps on the exact population, by the values of the relevant patterns.

At po = ½ background patterns are uniform bits, independent of the label. If a neuron is linear in
them for given relevant patterns, and so is the loss, then their mean, zero, replaces them: the
gradient is a sum over 2^k inputs. Where a neuron or the loss has a kink among these inputs, all
2^(D−k) backgrounds are listed.

Reference: shi2022, Lemmas 24 and 25.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.papers.shi2022.constants import lemma_24
from unlazy.papers.shi2022.gradients import generator
from unlazy.papers.shi2022.readout import GoodReadout
from unlazy.papers.shi2022.setting import all_bits

#: Inputs on which features and losses are compared, per value of the relevant patterns.
INPUTS = 512


class Weights(NamedTuple):
    """Weights of 2m neurons: first layer along the patterns (relevant ones first), biases, second
    layer.
    """

    w: Float[np.ndarray, "m D"]
    b: Float[np.ndarray, " m"]
    a: Float[np.ndarray, " m"]

    def features(self, x: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n m"]:
        """Return the truncated ReLU of every neuron."""
        result: np.ndarray = np.clip(x @ self.w.T + self.b, 0, 1)
        return result


def population_gradient(net: Weights, k: int) -> Weights:
    """Return the gradient of the hinge loss over the parity mixture at po = ½."""
    D = net.w.shape[1]
    signs = 2.0 * all_bits(k) - 1
    unit = 1 / math.sqrt(D)  # 1/(2σ̃)
    reach = np.abs(net.w[:, k:]).sum(axis=1) * unit
    total = Weights(*(np.zeros_like(part) for part in net))
    for relevant in signs:
        weight = 0.5 / len(signs) + 0.25 * (abs(relevant.sum()) == k)
        y = relevant.prod()
        x = np.concatenate([relevant, np.zeros(D - k)])[None] * unit
        u = (x @ net.w.T + net.b)[0]
        kinks = np.minimum(np.abs(u), np.abs(u - 1)) <= reach
        inside = (u > 0) & (u < 1)
        slope = np.abs((net.a * inside) @ net.w[:, k:]).sum() * unit
        if kinks.any() or abs(1 - y * (np.clip(u, 0, 1) @ net.a)) <= slope:
            rest = 2.0 * all_bits(D - k) - 1
            x = np.hstack([np.tile(relevant, (len(rest), 1)), rest]) * unit
        part = _gradient(net, x, y)
        total = Weights(*(old + weight * new for old, new in zip(total, part, strict=True)))
    return total


def _gradient(net: Weights, x: Float[np.ndarray, "n D"], y: float) -> Weights:
    """Return the gradient of the mean hinge loss over inputs with the same label."""
    u = x @ net.w.T + net.b
    features = np.clip(u, 0, 1)
    active = (y * (features @ net.a) < 1) * (-y / len(x))
    inside = ((u > 0) & (u < 1)) * active[:, None]
    return Weights(net.a[:, None] * (inside.T @ x), net.a * inside.sum(axis=0), active @ features)


class ClassifierDrift(GoodReadout):
    """Drift of the network of Lemma 23 in classifier steps of size `rate` and decay `decay` on
    the exact population, divided by the bounds of Lemmas 24 and 25; over the numbers of steps in
    `taken`. `faster` (negative control): factor on the gradients.

    `second_ratio`, `weights_ratio`, `biases_ratio`: maximum over neurons and numbers of steps so
    far of |a_i|, ‖w_i − w_i⁽²⁾‖ and |b_i − b_i⁽²⁾|, divided by the bounds of Lemma 24.
    `sharp_ratio`: as `weights_ratio`, but a second-layer weight moves by at most η times the
    largest observed feature per step, instead of η. `loss_ratio`: maximum over inputs and two
    second layers (all ones, random) of the change of the hinge loss since step 2, divided by the
    bound of Lemma 25. `norm`: maximum of ‖x‖.
    """

    rate: float = eqx.field(converter=float, kw_only=True)
    decay: float = eqx.field(converter=float, default=0.0, kw_only=True)
    faster: float = eqx.field(converter=float, default=1.0, kw_only=True)
    taken: tuple[int, ...] = eqx.field(static=True, kw_only=True)

    axis = "taken"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = generator(key, self.m)
        nets = self.train(Weights(*self.two_steps(rng)))
        x, y = self._inputs(rng)
        layers = np.stack([np.ones(2 * self.m), rng.normal(size=2 * self.m)])
        return self.ratios(nets, x, y, layers) | {
            "norm": np.full(len(nets), np.max(np.linalg.norm(x, axis=1)))
        }

    def train(self, net: Weights) -> list[Weights]:
        """Return the network after each number of steps in `taken`."""
        found, step = [], self.rate * self.faster
        shrink = tuple(1 - 2 * self.rate * decay for decay in (self.decay, 0.0, self.decay))
        for done in range(max(self.taken) + 1):
            if done in self.taken:
                found.append(net)
            slope = population_gradient(net, self.k)
            net = Weights(*(c * p - step * g for c, p, g in zip(shrink, net, slope, strict=True)))
        return found

    def ratios(
        self,
        nets: list[Weights],
        x: Float[np.ndarray, "n D"],
        y: Float[np.ndarray, " n"],
        layers: Float[np.ndarray, "l m"],
    ) -> dict[str, np.ndarray]:
        """Return the measurements of networks after each number of steps, on some inputs."""
        first = nets[0]
        allowed = np.linalg.norm(layers, axis=1) * math.sqrt(layers.shape[1])
        before = _losses(first.features(x), layers, y)
        largest = 0.0
        rows = []
        for taken, net in zip(self.taken, nets, strict=True):
            bound = lemma_24(
                steps=taken,
                rate=self.rate,
                decay=self.decay,
                a=np.abs(first.a),
                w=np.linalg.norm(first.w, axis=1),
            )
            features = net.features(x)
            largest = max(largest, float(features.max()))
            moved = np.linalg.norm(net.w - first.w, axis=1)
            change = np.max(np.abs(_losses(features, layers, y) - before), axis=1)
            sharp = bound.w - (self.rate * taken) ** 2 * (1 - largest / 2)
            row = {"weights": float(moved.max()), "bound": float(np.max(bound.w))}
            ratios = (
                {
                    "second_ratio": np.abs(net.a) / bound.a,
                    "weights_ratio": moved / bound.w,
                    "biases_ratio": np.abs(net.b - first.b) / bound.b,
                    "sharp_ratio": moved / sharp,
                    "loss_ratio": change / allowed / (np.max(bound.w) + np.max(bound.b)),
                }
                if taken
                else {}
            )
            names = ("second", "weights", "biases", "sharp", "loss")
            zero = {f"{name}_ratio": np.zeros(1) for name in names}
            rows.append(row | {n: float(np.max(v)) for n, v in (zero | ratios).items()})
        found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return {
            name: np.maximum.accumulate(values) if name.endswith("ratio") else values
            for name, values in found.items()
        }

    def _inputs(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs with all relevant patterns and random backgrounds, and their labels."""
        z = np.repeat(2.0 * all_bits(self.k) - 1, INPUTS, axis=0)
        rest = 2.0 * rng.integers(2, size=(len(z), self.D - self.k)) - 1
        return np.hstack([z, rest]) / math.sqrt(self.D), z.prod(axis=1)


def _losses(features: np.ndarray, layers: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the hinge loss of every second layer at every input."""
    result: np.ndarray = np.maximum(0, 1 - y[None, :] * (layers @ features.T))
    return result
