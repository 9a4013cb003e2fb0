"""Networks trained by the one training loop, as estimators.

Inputs are standardised, and so are the targets of a regression. Sizes are rounded up so that tables of about the same size share one
compiled program: columns of zeros, which change nothing, and repeated rows whose weights are shared with the originals.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unlazy.core.errors import require, unknown
from unlazy.core.losses import Loss
from unlazy.core.metrics import Outputs
from unlazy.estimators.base import Classifier, Regressor, Scoring, random_key, standard
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.base import Init, Network
from unlazy.networks.inits import PlainInit, ResNetInit
from unlazy.networks.residual import ALL, HIDDEN
from unlazy.tasks.base import Sampler, WeightedBatch

#: The least numbers of rows and columns to which a table is filled up.
ROWS, COLUMNS = 128, 16


def rounded_up(size: int, least: int) -> int:
    """The next of `least`·2^k, in eighths of a power of two beyond 1024: at most an eighth too much where it costs time."""
    power = max(least, 1 << (size - 1).bit_length())
    step = power // 16 if power > 1024 else power
    return -(-size // step) * step


@eqx.filter_jit
def _train(learner: GradientDescent, x: Any, y: Any, weight: Any, key: Any) -> Network:
    sampler = Sampler(lambda n, key: WeightedBatch(x, y, weight), x.shape[1], outputs=Outputs("reals", y.shape[1]))  # type: ignore[arg-type, return-value]
    return learner.fit(sampler, len(x), key=key).at(-1)  # type: ignore[return-value]


@eqx.filter_jit
def _predict(network: Network, x: Any) -> Any:
    return network(x)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NetworkMachine(Scoring):
    """A network trained by gradient descent on minibatches.

    Parameters
    ----------
    width : int
        Neurons of a hidden layer.
    activation : str
        Of all hidden neurons, any of `unlazy.core.activations.ACTIVATIONS`.
    trained : "all" or "hidden"
        Whether the last layer is trained, too.
    epochs : int
        Passes over the samples, at least 1; at least `least_steps` steps are made. Where a batch is less than
        all samples, the last quarter has a tenth of the step size.
    learning_rate, weight_decay : float
        Step size, and λ of the penalty λ·‖weights‖² on weights without biases.
    batch_size : int
        Samples a step.
    optimiser : "adam" or "sgd"
        SGD has no momentum.
    random_state : int, RandomState instance or None
        Draws the initial network and the order of the samples.

    `network_` is the trained network, on standardised inputs.
    """

    width: int = 256
    activation: str = "relu"
    trained: Literal["all", "hidden"] = "all"
    epochs: int = 100
    least_steps: int = 400
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    batch_size: int = 128
    optimiser: Literal["adam", "sgd"] = "adam"
    random_state: Any = None

    @abstractmethod
    def _init(self, d: int, outputs: int) -> Init:
        """The law of the initial network for inputs of size d; `outputs` may set its scales."""

    @abstractmethod
    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Parameter groups that are trained, and those of them that decay."""

    def _train_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        self._check()
        n, d = X.shape
        X = X.astype(np.float64)
        self.mean_, self.scale_ = standard(X, weight)
        rows = np.arange(rounded_up(n, ROWS)) % n
        shares = (weight / np.bincount(rows, minlength=n))[rows] * (len(rows) / weight.sum())
        x = self._standardised(X)[rows]
        batch = min(self.batch_size, len(rows))
        steps = max(self.least_steps, self.epochs * max(1, len(rows) // batch))
        groups, decaying = self._groups()
        descent = Descent(
            dict.fromkeys(groups, self.learning_rate),
            steps=steps,
            batch=batch,
            loss=loss,
            decay=dict.fromkeys(decaying, self.weight_decay) if self.weight_decay > 0 else {},
            optimiser=self.optimiser,
            drop=0.75 if batch < len(rows) else None,
        )
        learner = GradientDescent(self._init(d, Y.shape[1]), (descent,))
        # Numbers are arguments of the compiled program, not parts of it.
        learner = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, learner)
        x, y, shares = (np.asarray(part, np.float32) for part in (x, Y[rows], shares))
        network = _train(learner, jnp.asarray(x), jnp.asarray(y), jnp.asarray(shares), random_key(self.random_state))
        network = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), network)
        finite = all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(network))
        require(finite, f"Training diverged. Use a smaller learning_rate than {self.learning_rate:g}.")
        self._padded = network
        self.network_ = network.put({"w": network.first_layer[:, :d]})

    def _standardised(self, X: np.ndarray) -> np.ndarray:
        d = X.shape[1]
        return np.pad((X.astype(np.float64) - self.mean_) / self.scale_, ((0, 0), (0, rounded_up(d, COLUMNS) - d)))

    def _check(self) -> None:
        for name in ("width", "epochs", "batch_size", "least_steps"):
            value = getattr(self, name)
            least = 0 if name == "least_steps" else 1
            require(
                isinstance(value, int | np.integer) and bool(value >= least), f"{name} must be a whole number ≥ {least}, but is {value!r}."
            )
        require(bool(0 < self.learning_rate < math.inf), f"learning_rate must be a finite number > 0, but is {self.learning_rate!r}.")
        require(bool(0 <= self.weight_decay < math.inf), f"weight_decay must be a finite number ≥ 0, but is {self.weight_decay!r}.")
        if self.trained not in ("all", "hidden"):
            raise unknown("choice of trained layers", str(self.trained), ["all", "hidden"])

    def _scores(self, X: np.ndarray) -> np.ndarray:
        x = self._standardised(X)
        # In double precision and padded, so that the score of a sample does not depend on those beside it.
        size = min(4096, rounded_up(len(x), ROWS))
        parts = []
        with jax.enable_x64(True):
            for start in range(0, len(x), size):
                part = x[start : start + size]
                padded = np.pad(part, ((0, size - len(part)), (0, 0)))
                parts.append(np.asarray(_predict(self._padded, padded))[: len(part)])
        return np.concatenate(parts)


class _NetworkClassifier(Classifier, NetworkMachine):
    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        if Y.shape[1] == 1:
            self._train_scores(X, Y, weight, "logistic")
        else:
            self._train_scores(X, (Y > 0).astype(float), weight, "softmax")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, by the logistic or softmax function of the scores with which the network was trained."""
        scores = self._found(X)
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


class _NetworkRegressor(Regressor, NetworkMachine):
    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        self.target_mean_, self.target_scale_ = standard(Y, weight)
        self._train_scores(X, (Y - self.target_mean_) / self.target_scale_, weight, "squared")

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return NetworkMachine._scores(self, X) * self.target_scale_ + self.target_mean_


class _TwoLayer(NetworkMachine):
    def _init(self, d: int, outputs: int) -> Init:
        return PlainInit(
            m=int(self.width),
            w_scale=math.sqrt(2 / d),
            b_scale=0.5,
            a_scale=self.width**-0.5,
            activation=self.activation,
        )

    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (("w", "b", "a", "c"), ("w", "a")) if self.trained == "all" else (("w", "b"), ("w",))


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _ThreeLayerResNet(NetworkMachine):
    """The three-layer residual network of allenzhu2019.

    Parameters
    ----------
    bottleneck : bool
        Whether the second hidden layer sees only the base signal, U = V·A.
    """

    bottleneck: bool = True

    def _init(self, d: int, outputs: int) -> Init:
        return ResNetInit(
            m=int(self.width),
            w_scale=math.sqrt(2 / d),
            b_scale=0.5,
            v_scale=outputs**-0.5 if self.bottleneck else self.width**-0.5,
            e_scale=0.5,
            a_scale=self.width**-0.5,
            bottleneck=self.bottleneck,
            activation=self.activation,
        )

    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (ALL, ("w", "v", "a")) if self.trained == "all" else (HIDDEN, ("w", "v"))


class TwoLayerClassifier(_NetworkClassifier, _TwoLayer):
    """A network with one hidden layer, trained by the logistic loss, with more than two classes by softmax."""


class TwoLayerRegressor(_NetworkRegressor, _TwoLayer):
    """A network with one hidden layer, trained by the squared loss."""


class ThreeLayerResNetClassifier(_NetworkClassifier, _ThreeLayerResNet):
    """The three-layer residual network, trained by the logistic loss, with more than two classes by softmax."""


class ThreeLayerResNetRegressor(_NetworkRegressor, _ThreeLayerResNet):
    """The three-layer residual network, trained by the squared loss."""
