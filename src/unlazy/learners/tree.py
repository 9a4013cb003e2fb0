"""Algorithm 1 to the letter: a tree of neural gates, trained through its loss one layer at a time, by the one training loop.

    B(x)_j = φ(Σ_l v_jl·max(⟨w_jl, (x_{2j−1}, x_{2j})⟩, 0)),   ŷ = mean of the layer's outputs,   loss = max(1 − yŷ, 0) + λ|1 + ŷ|

Reference: malach2019, Section 3 and Algorithm 1.
"""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.errors import require, unknown
from unlazy.learners.gradient import Descent, GradientDescent, Source, Stage
from unlazy.learners.layerwise import initial_tree
from unlazy.learners.neural_gates import Neurons, width_for
from unlazy.losses import hinge
from unlazy.networks import Init, Network
from unlazy.tasks.base import Batch
from unlazy.tasks.circuit import Circuit


def hard_tanh(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """φ(u) = min(max(u, −1), 1), with slope zero at the corners too."""
    inside = jnp.abs(u) < 1
    return jnp.where(inside, jnp.where(inside, u, 0), jnp.sign(u))


class TreeNetwork(Network):
    """A tree of neural gates. Groups: w, the first layers of all gates, and v, their second layers; level 0 first."""

    w: tuple[Float[Array, "g k 2"], ...]
    v: tuple[Float[Array, "g k"], ...]

    @property
    def depth(self) -> int:
        """Number d of levels."""
        return len(self.w)

    def layer(self, level: int, below: Float[Array, "b m"]) -> Float[Array, "b g"]:
        """Outputs of one level of gates."""
        pairs = below.reshape(len(below), -1, 2)
        hidden = jax.nn.relu(jnp.einsum("bgi,gki->bgk", pairs, self.w[level]))
        return hard_tanh(jnp.einsum("bgk,gk->bg", hidden, self.v[level]))

    def up_to(self, level: int, x: Float[Array, "b n"]) -> Float[Array, "b m"]:
        """Outputs of `level`, where level d is the input."""
        for index in reversed(range(level, self.depth)):
            x = self.layer(index, x)
        return x

    def __call__(self, x: Float[Array, "b n"], *, smoothing: float | Float[Array, ""] | None = None) -> Float[Array, " b"]:
        """Scores of a batch."""
        require(smoothing is None, "A tree of neural gates has no smoothed form.")
        return self.up_to(0, x)[:, 0]

    @property
    def circuit(self) -> Circuit:
        """Each gate read on the four patterns of ±1; an output above 0 counts as +1."""
        patterns = jnp.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
        levels = []
        for w, v in zip(self.w, self.v, strict=True):
            outputs = jnp.einsum("pgk,gk->gp", jax.nn.relu(jnp.einsum("pi,gki->pgk", patterns, w)), v)
            levels.append(((np.asarray(outputs) > 0) << np.arange(4)).sum(axis=1))
        return Circuit(np.concatenate(levels))

    def enter(self, basis: Float[Array, "r d"]) -> Self:
        """Refused: gates read single inputs."""
        raise NotImplementedError("a tree reads its inputs one by one, not by coordinates")

    def leave(self, basis: Float[Array, "r d"]) -> Self:
        """Refused: gates read single inputs."""
        raise NotImplementedError("a tree reads its inputs one by one, not by coordinates")

    def get(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """The named groups among w, v."""
        for name in groups:
            if name not in ("w", "v"):
                raise unknown("parameter group", name, ("w", "v"))
        return {name: getattr(self, name) for name in groups}

    def put(self, groups: dict[str, Any]) -> TreeNetwork:
        """The network with the named groups replaced."""
        return TreeNetwork(groups.get("w", self.w), groups.get("v", self.v))

    @property
    def first_layer(self) -> Float[Array, "m d"]:
        """Neurons of the gates at the inputs, as rows over all inputs."""
        gates, k = self.v[-1].shape
        spread = jnp.eye(2 * gates).reshape(gates, 2, 2 * gates)
        return jnp.einsum("gki,gid->gkd", self.w[-1], spread).reshape(gates * k, 2 * gates)


class TreeInit(Init):
    """A tree of neural gates with `k` neurons each, as Algorithm 1 starts it; `scale` multiplies its first layers.

    End-to-end training starts from a larger scale: as small as in Algorithm 1, the signal dies out from level to level.
    """

    k: int = eqx.field(static=True)
    scale: float = eqx.field(converter=float, default=1.0, kw_only=True)

    @property
    def width(self) -> int:
        """Neurons of a gate."""
        return self.k

    def __call__(self, d: int, *, key: PRNGKeyArray) -> TreeNetwork:
        """Draw a tree on d inputs."""
        tree: list[Neurons] = initial_tree(d, self.k, key=key)
        return TreeNetwork(tuple(self.scale * layer.w for layer in tree), tuple(layer.v for layer in tree))


class LayerDescent(Stage):
    """Gradient descent of one level on the pooled loss, until all its gradients are zero or `steps` are done.

    `margin` = Δ in λ = |E y| + Δ/4. Labels are swapped where their mean is negative; the output gate is negated at the end.
    `printed_sign` takes the regulariser λ|1 − ŷ| as printed instead of λ|1 + ŷ|.
    """

    level: int = eqx.field(static=True)
    margin: float = eqx.field(converter=float, kw_only=True)
    steps: int = eqx.field(static=True, kw_only=True)
    printed_sign: bool = eqx.field(static=True, default=False, kw_only=True)

    def length(self, n: int) -> int:
        """Number of steps."""
        return self.steps

    def work(self, n: int, r: int, width: int) -> float:
        """Forward and backward through one level, as if no step were saved."""
        return 6.0 * self.steps * n * width * 2**self.level

    def run(self, model: Network, source: Source, lengths: tuple[int, ...]) -> tuple[Network, Float[Array, " s"]]:
        """Train."""
        assert isinstance(model, TreeNetwork) and isinstance(source.sample, Batch), "layerwise training needs a tree and a fixed sample"
        tree, (x, y) = model, source.sample
        below, mean = tree.up_to(self.level + 1, x), jnp.mean(y)
        labels, penalty = jnp.where(mean < 0, -y, y), jnp.abs(mean) + self.margin / 4
        sign = -1.0 if self.printed_sign else 1.0
        size = 2 ** (self.level + 1)
        rate = size / (16 * jnp.sqrt(2.0) * tree.v[self.level].shape[1])  # Lemma 14

        def replaced(w: Array) -> TreeNetwork:
            return eqx.tree_at(lambda net: net.w[self.level], tree, w)

        def loss(w: Array) -> Array:
            score = jnp.mean(replaced(w).layer(self.level, below), axis=1)
            return jnp.mean(hinge(score, labels) + penalty * jnp.abs(1 + sign * score))

        def moves(state: Any) -> Array:
            _, _, left, gradient = state
            return (left > 0) & jnp.any(gradient != 0)

        def step(state: Any) -> Any:
            w, total, left, gradient = state
            w = w - rate * gradient
            value, gradient = jax.value_and_grad(loss)(w)
            return w, total + value, left - 1, gradient

        def segment(w: Array, steps: Int[Array, ""]) -> tuple[Array, tuple[Array, Array]]:
            value, gradient = jax.value_and_grad(loss)(w)
            w, total, left, _ = jax.lax.while_loop(moves, step, (w, jnp.zeros(()), steps, gradient))
            done = steps - left
            return w, (w, jnp.where(done > 0, total / jnp.maximum(done, 1), value))

        _, (trained, losses) = jax.lax.scan(segment, tree.w[self.level], jnp.array(lengths))
        stacked = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(lengths), *leaf.shape)), tree)
        stacked = eqx.tree_at(lambda net: net.w[self.level], stacked, trained)
        if self.level == 0:
            stacked = eqx.tree_at(lambda net: net.v[0], stacked, jnp.where(mean < 0, -stacked.v[0], stacked.v[0]))
        return stacked, losses


def layerwise_network(n: int, *, margin: float, steps: int, k: int | None = None, printed_sign: bool = False) -> GradientDescent:
    """Algorithm 1 as a learner of the literal network, at most `steps` steps a layer."""
    stages = tuple(LayerDescent(i, margin=margin, steps=steps, printed_sign=printed_sign) for i in reversed(range(n.bit_length() - 1)))
    return GradientDescent(TreeInit(k or width_for(n, 0.001)), stages)


def end_to_end(n: int, *, steps: int, batch: int, rate: float, optimiser: str = "adam", k: int = 16) -> GradientDescent:
    """The same tree trained as a whole, with standard practice: logistic loss, minibatches."""
    descent = Descent({"w": rate}, steps=steps, batch=batch, loss="logistic", optimiser=optimiser)  # type: ignore[arg-type]
    # Neurons of unit scale: the hard-tanh outputs are then spread over [−1, 1].
    return GradientDescent(TreeInit(k, scale=4 * 2**0.5 * k / k**0.5), (descent,))
