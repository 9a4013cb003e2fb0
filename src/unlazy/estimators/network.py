"""Networks trained by the one training loop, as estimators.

Inputs are standardised, and so are the targets of a regression. What is not given is chosen on rows
that are held out (`unlazy.estimators.ensembles`); then an ensemble is trained on all rows, of which
the mean score counts.
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
    FEWEST,
    ROWS,
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

#: Step sizes and penalties that are tried where held-out rows choose. The first are taken where
#: there are too few rows to hold any out.
RATES, DECAYS = (3e-3, 1e-3), (1e-3, 1e-5, 1e-4, 1e-2)
SETTINGS = tuple(itertools.product(RATES, DECAYS))
#: With at least so many rows fewer pairs are tried, over this share of the steps.
MANY, SETTINGS_MANY, RACE = 2_000, ((3e-3, 1e-3), (3e-3, 1e-4), (3e-3, 1e-2), (1e-3, 1e-4)), 0.5
#: Shares of the steps at which training may end.
STOPS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
#: Networks that are trained as one program. Several such programs run side by side, one a core.
AT_ONCE = 2

HeldOut = Literal["held-out"]


@renamed_parameters(optimiser="optimizer", least_steps="min_steps", most_steps="max_steps")
@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class NetworkMachine(Scoring):
    """An ensemble of networks trained by gradient descent on minibatches.

    Parameters
    ----------
    width : int
        Neurons of a hidden layer.
    activation : str
        Of all hidden neurons, any of `unlazy.core.activations.ACTIVATIONS`.
    trained : "all" or "hidden"
        Whether the last layer is trained, too.
    learning_rate, weight_decay : float or "held-out"
        Step size, and λ of the penalty λ·‖weights‖² on weights without biases. "held-out" tries a
        few and takes the best on rows that are held out.
    early_stopping : bool
        Whether training may end sooner, where held-out rows say so.
    epochs, min_steps, max_steps : int
        Passes over the samples, but at least and at most so many steps. The last quarter of the
        steps has a tenth of the step size.
    batch_size : int
        Samples a step.
    optimiser : "adam" or "sgd"
        SGD has no momentum.
    ensemble : int
        How many networks are trained on all samples with what was chosen. Their mean score counts.
    random_state : int, RandomState instance or None
        Draws the initial networks, the order of the samples, and which are held out.

    `fit` begins anew; `partial_fit` goes on from the networks that there are, by one pass over the
    samples that it is given, for data that come in parts. Nothing is held out then: step size and
    penalty are those given, or the first that would be tried; inputs and targets are standardised
    by the first part. The optimiser's averages go on as well.

    `networks_` are the trained networks, on standardised inputs. `learning_rate_`, `weight_decay_`
    and `steps_` are what was chosen, `held_out_losses_` the losses by setting and stop (None where
    nothing was chosen).
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
        """The law of the initial network for inputs of size d; `outputs` may set its scales."""

    @abstractmethod
    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Parameter groups that are trained, and those of them that decay."""

    def _train_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        self._check()
        d = X.shape[1]
        rows = DistinctRows.of(X.astype(np.float64), Y, weight)
        self.mean_, self.scale_ = standard(rows.x, rows.weight)
        rows = rows._replace(x=(rows.x - self.mean_) / self.scale_)
        many = len(rows.x) >= MANY
        members = Members(rows, loss, AT_ONCE)
        settings, steps = self._settings(
            d, Y.shape[1], len(members.repeated), loss, SETTINGS_MANY if many else SETTINGS
        )
        stops = self._stops(steps)
        key = random_key(self.random_state)
        key_choice, key_kept = jax.random.split(key)
        best, stop, self._sharpness, self.held_out_losses_ = 0, -1, 1.0, None
        if len(rows.x) >= FEWEST and len(settings) * len(stops) > 1:
            splits = 3 if len(rows.x) < 500 else 2 if not many else 1
            seed = int(jax.random.randint(key_choice, (), 0, 2**31 - 1))
            race = self._stops(max(1, round(RACE * steps))) if many else stops
            choice = members.choose(
                [recipe for _, _, recipe in settings], race, splits, seed, key_choice
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
        self.__dict__.pop("_states", None)  # what partial_fit left
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
        """The networks of a recorded step, for inputs of size d."""
        self._padded = jax.tree.map(lambda leaf: np.asarray(leaf[:, step], np.float64), networks)
        finite = all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(self._padded))
        require(
            finite, f"Training diverged. Use a smaller learning_rate than {self.learning_rate_:g}."
        )
        self.networks_ = [
            network.put({"w": network.first_layer[:, :d]})
            for network in map(self._padded.at, range(self.ensemble))
        ]

    def _go_on(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        """One pass over these samples, from the present networks; without any, from drawn ones."""
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
            self._states = members.begun(stage, self._padded)
        self._states = members.went_on(stage, self._states, steps, keys)
        self.steps_ += steps
        self._keep(jax.tree.map(lambda leaf: leaf[:, None], self._states[0]), 0, d)

    def _settings(
        self, d: int, outputs: int, rows: int, loss: Loss, pairs: Sequence[tuple[float, float]]
    ) -> tuple[list[tuple[float, float, Recipe]], int]:
        """Step size, penalty and recipe of all settings that are tried, and the number of steps.

        What is given is not tried otherwise.
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
        """Where training of so many steps may end.

        Equal ones are kept, so that stops of two trainings stand for each other.
        """
        return (
            tuple(max(1, round(share * steps)) for share in STOPS)
            if self.early_stopping
            else (steps,)
        )

    def _check(self) -> None:
        for name in ("width", "epochs", "batch_size", "min_steps", "max_steps", "ensemble"):
            value = getattr(self, name)
            least = 0 if name == "min_steps" else 1
            require(
                isinstance(value, int | np.integer) and bool(value >= least),
                f"{name} must be a whole number ≥ {least}, but is {value!r}.",
            )
        for name, lowest in (("learning_rate", "> 0"), ("weight_decay", "≥ 0")):
            value = getattr(self, name)
            if isinstance(value, str):
                if value != "held-out":
                    raise unknown(name, value, ["held-out"])
                continue
            fits = 0 < value < math.inf if name == "learning_rate" else 0 <= value < math.inf
            require(
                bool(fits),
                f"{name} must be a finite number {lowest} or 'held-out', but is {value!r}.",
            )
        if self.trained not in ("all", "hidden"):
            raise unknown("choice of trained layers", str(self.trained), ["all", "hidden"])

    def _scores(self, X: np.ndarray) -> np.ndarray:
        x = padded((X.astype(np.float64) - self.mean_) / self.scale_)
        # In double precision and padded, so that the score of a sample does not depend on those
        # beside it.
        size = min(4096, rounded_up(len(x), ROWS))
        parts = []
        with jax.enable_x64(True):
            for start in range(0, len(x), size):
                part = x[start : start + size]
                filled = np.pad(part, ((0, size - len(part)), (0, 0)))
                parts.append(np.asarray(mean_scores(self._padded, filled))[: len(part)])
        return np.concatenate(parts)


class _NetworkClassifier(Classifier, NetworkMachine):
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from samples that came now.

        The first call names all `classes` that will ever come.
        """
        fresh = not hasattr(self, "_padded")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=fresh)
        check_classification_targets(y)
        if fresh:
            require(
                classes is not None,
                "The first call of partial_fit must name all labels that will ever come, as "
                "classes.",
            )
            self.classes_ = np.unique(classes)
            require(
                len(self.classes_) > 1,
                f"A classifier needs at least 2 classes, but classes is {classes!r}.",
            )
        elif classes is not None:
            same = np.array_equal(np.unique(classes), self.classes_)
            require(
                same,
                f"The classes are {self.classes_.tolist()} since the first call, but "
                f"{list(classes)} were named now.",
            )
        unknown_labels = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()))
        require(
            not unknown_labels,
            f"The labels {unknown_labels} are not among the classes {self.classes_.tolist()}.",
        )
        X, y, weight = weighted(X, y, sample_weight, least=1)
        Y = self._coded(np.searchsorted(self.classes_, y))
        if Y.shape[1] == 1:
            self._go_on(X, Y, weight, "logistic")
        else:
            self._go_on(X, (Y > 0).astype(float), weight, "softmax")
        return self

    def _fit_scores(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> None:
        if Y.shape[1] == 1:
            self._train_scores(X, Y, weight, "logistic")
        else:
            self._train_scores(X, (Y > 0).astype(float), weight, "softmax")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes: the logistic or softmax function of the scores, times the
        factor that fits held-out rows best.
        """
        scores = self._found(X) * self._sharpness
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        result: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
        return result


class _NetworkRegressor(Regressor, NetworkMachine):
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from samples that came now.

        The first ones set the units of the targets, so let them be many.
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
        X, y, weight = weighted(X, np.asarray(y, np.float64), sample_weight, least=1)
        Y = y.reshape(len(y), -1)
        if fresh:
            self.n_outputs_, self._single, self._units = Y.shape[1], y.ndim == 1, np.ones(1)
            self.target_mean_, self.target_scale_ = standard(Y, weight)
        require(
            Y.shape[1] == self.n_outputs_,
            f"There were {self.n_outputs_} targets in the first call, but there are "
            f"{Y.shape[1]} now.",
        )
        self._go_on(
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
    """A network with one hidden layer, trained by the logistic loss, with more than two classes by
    softmax.
    """


class TwoLayerRegressor(_NetworkRegressor, _TwoLayer):
    """A network with one hidden layer, trained by the squared loss."""


class ThreeLayerResNetClassifier(_NetworkClassifier, _ThreeLayerResNet):
    """The three-layer residual network, trained by the logistic loss, with more than two classes by
    softmax.
    """


class ThreeLayerResNetRegressor(_NetworkRegressor, _ThreeLayerResNet):
    """The three-layer residual network, trained by the squared loss."""


class DeepMLPClassifier(_NetworkClassifier, _Deep):
    """A network with several hidden layers, trained by the logistic loss, with more than two
    classes by softmax.
    """


class DeepMLPRegressor(_NetworkRegressor, _Deep):
    """A network with several hidden layers, trained by the squared loss."""
