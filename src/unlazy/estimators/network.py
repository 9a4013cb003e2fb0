"""Estimators that train networks by gradient descent.

Inputs and regression targets are standardized. Hyperparameters that are not given are selected on
held-out rows (`unlazy.estimators.ensembles`). Then an ensemble is trained on all rows, and its
scores are averaged.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Self

import jax
import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import require, unknown
from unlazy.core.losses import Loss
from unlazy.estimators.base import Classifier, Regressor, Scoring, random_key, standard, weighted
from unlazy.estimators.ensembles import (
    MIN_ROWS,
    ROW_UNIT,
    DistinctRows,
    Members,
    Recipe,
    mean_scores,
    padded,
    rounded_up,
)
from unlazy.learners.gradient import Descent
from unlazy.networks.base import Init, Network
from unlazy.networks.deep import DeepInit
from unlazy.networks.inits import PlainInit, ResNetInit
from unlazy.networks.residual import ALL, HIDDEN

#: Learning rates and weight decays to select from on held-out rows. The first are used if there are
#: too few rows to hold any out.
RATES, DECAYS = (3e-3, 1e-3), (1e-3, 1e-5, 1e-4, 1e-2)
SETTINGS = tuple(itertools.product(RATES, DECAYS))
#: From `LARGE` rows on, only `SETTINGS_LARGE` are tried, over this fraction of the steps.
LARGE, SELECTION_FRACTION = 2_000, 0.5
SETTINGS_LARGE = ((3e-3, 1e-3), (3e-3, 1e-4), (3e-3, 1e-2), (1e-3, 1e-4))
#: Fractions of the steps after which training may stop.
STOPS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
#: Networks trained in one program. Several programs run in parallel, one per core.
AT_ONCE = 2

HeldOut = Literal["held-out"]


@renamed_parameters(optimiser="optimizer", least_steps="min_steps", most_steps="max_steps")
@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NetworkMachine(Scoring):
    """An ensemble of networks trained by gradient descent on minibatches.

    Parameters
    ----------
    width : int
        Neurons per hidden layer.
    activation : str
        Activation of the hidden layers, a name in `unlazy.core.activations.ACTIVATIONS`.
    trained : "all" or "hidden"
        Whether to train all layers or only the hidden ones.
    learning_rate, weight_decay : float or "held-out"
        Learning rate, and λ of the penalty λ·‖weights‖², which excludes biases. "held-out" selects
        from a few values on held-out rows.
    early_stopping : bool
        Whether held-out rows may select a smaller number of steps.
    epochs, min_steps, max_steps : int
        Passes over the samples, and bounds on the number of steps. The learning rate is divided by
        10 for the last quarter of the steps.
    batch_size : int
        Samples per step.
    optimizer : "adam" or "sgd"
        Optimizer; "sgd" has no momentum.
    ensemble : int
        Number of networks trained on all samples, whose scores are averaged.
    random_state : int, RandomState instance or None
        Random state of the initial networks, the order of the samples and the held-out rows.

    `fit` starts from new networks. `partial_fit` continues training with one pass over the given
    samples and keeps the optimizer's state. It holds nothing out: "held-out" stands for the first
    candidate value. The first call sets the standardization of inputs and targets.

    `networks_` are the trained networks, for standardized inputs. `learning_rate_`,
    `weight_decay_` and `steps_` are the selected values. `held_out_losses_` are the losses by
    setting and number of steps, or None if nothing was selected.
    """

    width: int = 128
    activation: str = "relu"
    trained: Literal["all", "hidden"] = "all"
    learning_rate: float | HeldOut = "held-out"
    weight_decay: float | HeldOut = "held-out"
    early_stopping: bool = True
    epochs: int = 100
    min_steps: int = 800
    max_steps: int = 6000
    batch_size: int = 128
    optimizer: Literal["adam", "sgd"] = "adam"
    ensemble: int = 8
    random_state: Any = None

    @abstractmethod
    def _init(self, d: int, outputs: int) -> Init:
        """Return the initialization for inputs of size d; its scales may depend on `outputs`."""

    @abstractmethod
    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the trained parameter groups, and those of them with weight decay."""

    def _train_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        self._check()
        d = X.shape[1]
        rows = DistinctRows.of(X.astype(np.float64), Y, weight)
        self.mean_, self.scale_ = standard(rows.x, rows.weight)
        rows = rows._replace(x=(rows.x - self.mean_) / self.scale_)
        large = len(rows.x) >= LARGE
        members = Members(rows, loss, AT_ONCE)
        settings, steps = self._settings(
            d, Y.shape[1], len(members.repeated), loss, SETTINGS_LARGE if large else SETTINGS
        )
        stops = self._stops(steps)
        key = random_key(self.random_state)
        key_choice, key_kept = jax.random.split(key)
        best, stop, self._sharpness, self.held_out_losses_ = 0, -1, 1.0, None
        if len(rows.x) >= MIN_ROWS and len(settings) * len(stops) > 1:
            splits = 3 if len(rows.x) < 500 else 2 if not large else 1
            seed = int(jax.random.randint(key_choice, (), 0, 2**31 - 1))
            selection_stops = (
                self._stops(max(1, round(SELECTION_FRACTION * steps))) if large else stops
            )
            choice = members.choose(
                [recipe for _, _, recipe in settings], selection_stops, splits, seed, key_choice
            )
            best, stop, self._sharpness, self.held_out_losses_ = (
                choice.setting,
                choice.stop,
                choice.sharpness,
                choice.losses,
            )
        self.learning_rate_, self.weight_decay_, recipe = settings[best]
        self.steps_ = stops[stop]
        everything = np.broadcast_to(rows.weight, (self.ensemble, len(rows.weight)))
        self.__dict__.pop("_states", None)  # of partial_fit
        self._keep(
            members.train(
                [recipe] * self.ensemble,
                stops,
                everything,
                jax.random.split(key_kept, self.ensemble),
            ),
            stop,
            d,
        )

    def _keep(self, networks: Network, step: int, d: int) -> None:
        """Store the networks of a recorded step, for inputs of size d."""
        self._padded = jax.tree.map(lambda leaf: np.asarray(leaf[:, step], np.float64), networks)
        finite = all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(self._padded))
        require(
            finite, f"Training diverged. Use a smaller learning_rate than {self.learning_rate_:g}."
        )
        self.networks_ = [
            network.put({"w": network.first_layer[:, :d]})
            for network in map(self._padded.at, range(self.ensemble))
        ]

    def _continue(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        """Train the present networks, or new ones if there are none, for one pass."""
        self._check()
        d, fresh = X.shape[1], not hasattr(self, "_padded")
        rows = DistinctRows.of(X.astype(np.float64), Y, weight)
        if fresh:
            self.mean_, self.scale_ = standard(rows.x, rows.weight)
            self.learning_rate_ = (
                RATES[0] if isinstance(self.learning_rate, str) else float(self.learning_rate)
            )
            self.weight_decay_ = (
                DECAYS[0] if isinstance(self.weight_decay, str) else float(self.weight_decay)
            )
            self.steps_, self._sharpness, self.held_out_losses_ = 0, 1.0, None
        rows = rows._replace(x=(rows.x - self.mean_) / self.scale_)
        members = Members(rows, loss, int(self.ensemble))
        batch = min(int(self.batch_size), len(members.repeated))
        steps = max(1, len(members.repeated) // batch)
        stage = self._stage(self.learning_rate_, self.weight_decay_, batch, loss)
        keys = jax.random.split(
            jax.random.fold_in(random_key(self.random_state), self.steps_), self.ensemble
        )
        if fresh:
            self._padded = members.drawn(self._init(d, Y.shape[1]), keys)
        if not hasattr(self, "_states"):
            self._states = members.initial_states(stage, self._padded)
        self._states = members.continued(stage, self._states, steps, keys)
        self.steps_ += steps
        self._keep(jax.tree.map(lambda leaf: leaf[:, None], self._states[0]), 0, d)

    def _settings(
        self, d: int, outputs: int, rows: int, loss: Loss, pairs: Sequence[tuple[float, float]]
    ) -> tuple[list[tuple[float, float, Recipe]], int]:
        """Return learning rate, weight decay and recipe of each candidate, and the number of steps.

        Values given by the user replace those in `pairs`.
        """
        given = [
            None if isinstance(value, str) else float(value)
            for value in (self.learning_rate, self.weight_decay)
        ]
        tried = dict.fromkeys(
            (given[0] or rate, decay if given[1] is None else given[1]) for rate, decay in pairs
        )
        batch = min(int(self.batch_size), rows)
        steps = int(
            min(
                max(self.min_steps, self.epochs * max(1, rows // batch)),
                max(self.max_steps, self.min_steps),
            )
        )
        init = self._init(d, outputs)
        return [
            (rate, decay, Recipe(init, self._stage(rate, decay, batch, loss, drop=0.75)))
            for rate, decay in tried
        ], steps

    def _stage(
        self, rate: float, decay: float, batch: int, loss: Loss, *, drop: float | None = None
    ) -> Descent:
        groups, decaying = self._groups()
        rates, penalties = dict.fromkeys(groups, rate), dict.fromkeys(decaying, decay)
        return Descent(
            rates, batch=batch, loss=loss, decay=penalties, optimizer=self.optimizer, drop=drop
        )

    def _stops(self, steps: int) -> tuple[int, ...]:
        """Return the numbers of steps after which training may stop.

        Equal ones are kept, so that indices agree between different numbers of steps.
        """
        return (
            tuple(max(1, round(fraction * steps)) for fraction in STOPS)
            if self.early_stopping
            else (steps,)
        )

    def _check(self) -> None:
        for name in ("width", "epochs", "batch_size", "min_steps", "max_steps", "ensemble"):
            value = getattr(self, name)
            minimum = 0 if name == "min_steps" else 1
            require(
                isinstance(value, int | np.integer) and bool(value >= minimum),
                f"{name} must be an integer ≥ {minimum}, got {value!r}.",
            )
        for name, bound in (("learning_rate", "> 0"), ("weight_decay", "≥ 0")):
            value = getattr(self, name)
            if isinstance(value, str):
                if value != "held-out":
                    raise unknown(name, value, ["held-out"])
                continue
            fits = 0 < value < math.inf if name == "learning_rate" else 0 <= value < math.inf
            require(
                bool(fits),
                f"{name} must be finite and {bound}, or 'held-out', got {value!r}.",
            )
        if self.trained not in ("all", "hidden"):
            raise unknown("choice of trained layers", str(self.trained), ["all", "hidden"])

    def _scores(self, X: np.ndarray) -> np.ndarray:
        x = padded((X.astype(np.float64) - self.mean_) / self.scale_)
        # In double precision and padded, so that a sample's score does not depend on the others.
        size = min(4096, rounded_up(len(x), ROW_UNIT))
        parts = []
        with jax.enable_x64(True):
            for start in range(0, len(x), size):
                part = x[start : start + size]
                filled = np.pad(part, ((0, size - len(part)), (0, 0)))
                parts.append(np.asarray(mean_scores(self._padded, filled))[: len(part)])
        return np.concatenate(parts)


class _NetworkClassifier(Classifier, NetworkMachine):
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue training with one pass over new samples.

        The first call requires all `classes`.
        """
        fresh = not hasattr(self, "_padded")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=fresh)
        check_classification_targets(y)
        if fresh:
            require(
                classes is not None,
                "classes must list all labels in the first call of partial_fit.",
            )
            self.classes_ = np.unique(classes)
            require(
                len(self.classes_) > 1,
                f"classes must contain at least 2 classes, got {classes!r}.",
            )
        elif classes is not None:
            same = np.array_equal(np.unique(classes), self.classes_)
            require(
                same,
                f"classes must be {self.classes_.tolist()} as in the first call, got "
                f"{list(classes)}.",
            )
        unknown_labels = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()))
        require(
            not unknown_labels,
            f"y contains labels {unknown_labels} that are not in {self.classes_.tolist()}.",
        )
        X, y, weight = weighted(X, y, sample_weight, min_samples=1)
        Y = self._coded(np.searchsorted(self.classes_, y))
        if Y.shape[1] == 1:
            self._continue(X, Y, weight, "logistic")
        else:
            self._continue(X, (Y > 0).astype(float), weight, "softmax")
        return self

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        if Y.shape[1] == 1:
            self._train_scores(X, Y, weight, "logistic")
        else:
            self._train_scores(X, (Y > 0).astype(float), weight, "softmax")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities.

        They are the logistic or softmax function of the scores, multiplied by the factor of the
        smallest held-out loss.
        """
        scores = self._checked_scores(X) * self._sharpness
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        result: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
        return result


class _NetworkRegressor(Regressor, NetworkMachine):
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Continue training with one pass over new samples.

        The first call sets the scale of the targets, so it should have many samples.
        """
        fresh = not hasattr(self, "_padded")
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            reset=fresh,
            multi_output=True,
            y_numeric=True,
        )
        X, y, weight = weighted(X, np.asarray(y, np.float64), sample_weight, min_samples=1)
        Y = y.reshape(len(y), -1)
        if fresh:
            self.n_outputs_, self._single, self._units = Y.shape[1], y.ndim == 1, np.ones(1)
            self.target_mean_, self.target_scale_ = standard(Y, weight)
        require(
            Y.shape[1] == self.n_outputs_,
            f"y must have {self.n_outputs_} targets as in the first call, got {Y.shape[1]}.",
        )
        self._continue(
            X, (Y / self._units - self.target_mean_) / self.target_scale_, weight, "squared"
        )
        return self

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        self.target_mean_, self.target_scale_ = standard(Y, weight)
        self._train_scores(X, (Y - self.target_mean_) / self.target_scale_, weight, "squared")

    def _scores(self, X: np.ndarray) -> np.ndarray:
        result: np.ndarray = (
            NetworkMachine._scores(self, X) * self.target_scale_ + self.target_mean_
        )
        return result


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


@renamed_parameters(optimiser="optimizer", least_steps="min_steps", most_steps="max_steps")
@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _Deep(NetworkMachine):
    """A fully connected network with several hidden layers.

    Parameters
    ----------
    depth : int
        Number of hidden layers.
    """

    width: int = 64
    depth: int = 3
    max_steps: int = 5000
    ensemble: int = 4

    def _init(self, d: int, outputs: int) -> Init:
        return DeepInit(
            m=int(self.width),
            depth=int(self.depth) if isinstance(self.depth, int | np.integer) else self.depth,
            w_scale=math.sqrt(2 / d),
            b_scale=0.1,
            v_scale=math.sqrt(2 / self.width),
            a_scale=self.width**-0.5,
            activation=self.activation,
        )

    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (
            (("w", "b", "v", "e", "a", "c"), ("w", "v", "a"))
            if self.trained == "all"
            else (("w", "b", "v", "e"), ("w", "v"))
        )


@renamed_parameters(optimiser="optimizer", least_steps="min_steps", most_steps="max_steps")
@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _ThreeLayerResNet(NetworkMachine):
    """The three-layer residual network of allenzhu2019.

    Parameters
    ----------
    bottleneck : bool
        Whether the input of the second hidden layer is only the base signal, U = V·A.
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
    """A network with one hidden layer and logistic loss, or softmax for three or more classes."""


class TwoLayerRegressor(_NetworkRegressor, _TwoLayer):
    """A network with one hidden layer and squared loss."""


class ThreeLayerResNetClassifier(_NetworkClassifier, _ThreeLayerResNet):
    """The three-layer residual network with logistic loss, or softmax for three or more classes."""


class ThreeLayerResNetRegressor(_NetworkRegressor, _ThreeLayerResNet):
    """The three-layer residual network with squared loss."""


class DeepMLPClassifier(_NetworkClassifier, _Deep):
    """A deep network with logistic loss, or softmax for three or more classes."""


class DeepMLPRegressor(_NetworkRegressor, _Deep):
    """A deep network with squared loss."""
