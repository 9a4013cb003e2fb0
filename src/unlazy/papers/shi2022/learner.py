"""Two-step feature learning: two steps with full decay learn features, later steps a classifier.

Full decay, λ = 1/(2η), replaces weights by the negative gradient. Step 1 applies it to the first
layer, w ← −η₁∇, which finds the hidden direction. Step 2 applies it to both layers and improves the
direction. The remaining steps train all parameters without noise. `TwoStep` holds the
hyperparameters of all methods of the comparison, with the same initialization: the network, frozen
features after one or two steps, random features, and the linearized network.

Reference: shi2022, Section 3.1, Theorem 26, Appendix E.1.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, Self

from unlazy.core.errors import require
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.readout import RidgeReadout
from unlazy.networks.inits import AntisymmetricInit, TangentInit
from unlazy.papers.shi2022.constants import TheoremConstants, theorem_26, theorem_34


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStep:
    """Hyperparameters of the schedule; created by `theorem`, `general` or `practical`.

    m: antisymmetric pairs of neurons. T: total number of steps. batch: examples per step after the
    first two steps, which use the whole sample. first, second: η₁, η₂; if `spread` is given, η₂ of
    w is set from the sample, see `Descent`. noise: σ_ξ of steps 1 and 2. w_rate, a_rate: step sizes
    for t > 2 of the first layer (weights and biases) and the second. drop: fraction of the
    remaining steps after which step sizes are divided by ten (1: never). features_rate,
    tangent_rate: step sizes of random features and linearized network. noise = 0: none. optimizer:
    of the network for t > 2; with "adam", all parameters have step size w_rate. kept: fraction of
    the initial weights that remains after step 1. class_weighted: in steps 1 and 2;
    always_weighted: in all steps of all methods.
    """

    m: int
    T: int
    batch: int
    w_scale: float
    b_scale: float
    a_scale: float
    noise: float
    first: float
    second: float
    spread: float | None
    class_weighted: bool
    w_rate: float
    a_rate: float
    features_rate: float
    tangent_rate: float
    drop: float
    optimizer: Literal["sgd", "adam"] = "sgd"
    kept: float = 0.0
    always_weighted: bool = False

    @classmethod
    def theorem(
        cls, *, k: int, m: int, T: int, gamma: float, sigma: float, batch: int = 1000
    ) -> Self:
        """Return the constants of Theorem 26 exactly as stated.

        Deviation: the gradient of the sample replaces the population gradient.
        """
        return cls._verbatim(
            theorem_26(k=k, m=m, T=T, gamma=gamma, sigma=sigma), m, T, batch, class_weighted=False
        )

    @classmethod
    def general(
        cls,
        *,
        k: int,
        m: int,
        T: int,
        D: int,
        gamma: float,
        sigma: float,
        p_min: float,
        batch: int = 1000,
    ) -> Self:
        """Return the constants of Theorem 34: small initial weights, and classes weighted equally
        in steps 1 and 2.
        """
        c = theorem_34(k=k, m=m, T=T, D=D, gamma=gamma, sigma=sigma, p_min=p_min)
        return cls._verbatim(c, m, T, batch, class_weighted=True)

    @classmethod
    def _verbatim(
        cls, c: TheoremConstants, m: int, T: int, batch: int, *, class_weighted: bool
    ) -> Self:
        return cls(
            m=m,
            T=T,
            batch=batch,
            w_scale=c.w_scale,
            b_scale=c.b_scale,
            a_scale=c.a_scale,
            noise=c.noise,
            first=c.first,
            second=c.second,
            spread=None,
            class_weighted=class_weighted,
            w_rate=c.rest,
            a_rate=c.rest,
            features_rate=c.rest,
            tangent_rate=c.rest,
            drop=1.0,
        )

    @classmethod
    def practical(
        cls, *, k: int, m: int, T: int, gamma: float, sigma: float, batch: int = 1000
    ) -> Self:
        """Return settings that reproduce the published tables at published sizes, chosen on seeds
        0–4.

        Deviation: σ_b = σ_ξ = 0.5 instead of 1/k². Deviation: η₂ of w is set so that ⟨w_i, x⟩ has
        root mean square σ_b, instead of η₂ = 1. Deviation: steps t > 2 use 0.3 (first layer) and
        150/m (second), a tenth of it in the last third, instead of k²/(T·m^{1/3}). Deviation: steps
        1 and 2 weight the classes equally. Deviation: random features use step size 15/m and the
        linearized network 3/m, a tenth of it in the last third; the paper gives none.
        """
        c = theorem_26(k=k, m=m, T=T, gamma=gamma, sigma=sigma)
        return cls(
            m=m,
            T=T,
            batch=batch,
            w_scale=c.w_scale,
            b_scale=0.5,
            a_scale=c.a_scale,
            noise=0.5,
            first=c.first,
            second=1.0,
            spread=0.5,
            class_weighted=True,
            w_rate=0.3,
            a_rate=150 / m,
            features_rate=15 / m,
            tangent_rate=3 / m,
            drop=2 / 3,
        )

    def __post_init__(self) -> None:
        require(self.T > 3, f"`T` must be greater than 3, got {self.T}.")
        require(0 < self.drop <= 1, f"`drop` must lie in (0, 1], got {self.drop}.")

    @property
    def init(self) -> AntisymmetricInit:
        """Initialization that all methods share."""
        return AntisymmetricInit(
            m=self.m, w_scale=self.w_scale, b_scale=self.b_scale, a_scale=self.a_scale
        )

    def network(self, record: tuple[int, ...] = ()) -> GradientDescent:
        """Return the network, trained by the whole schedule."""
        rates = {"w": self.w_rate, "b": self.w_rate, "a": self._readout_rate}
        rest = self._classifier(self.T - 2, rates)
        rest = dataclasses.replace(rest, optimizer=self.optimizer)
        return GradientDescent(self.init, (*self._features(2), rest), record=record)

    def frozen(
        self,
        after: Literal[1, 2],
        record: tuple[int, ...] = (),
        *,
        readout: Literal["trained", "converged"] = "trained",
    ) -> GradientDescent:
        """Return One Step or Two Step: the first layer is frozen after step `after`, and a
        classifier is trained on it: as the network is for t > 2, or to convergence.

        The converged readout runs in double precision: after one step of the theorem's size,
        features differ from their means by 1e-8.
        """
        if readout == "converged":
            return GradientDescent(
                self.init, (*self._features(after), RidgeReadout()), record=record, precision=64
            )
        classifier = self._classifier(self.T - after, {"a": self._readout_rate})
        classifier = dataclasses.replace(classifier, optimizer=self.optimizer)
        return GradientDescent(self.init, (*self._features(after), classifier), record=record)

    @property
    def _readout_rate(self) -> float:
        """Step size of the second layer for t > 2."""
        return self.w_rate if self.optimizer == "adam" else self.a_rate

    def random_features(
        self, record: tuple[int, ...] = (), *, readout: Literal["trained", "converged"] = "trained"
    ) -> GradientDescent:
        """Return random features: the first layer is frozen at initialization."""
        if readout == "converged":
            return GradientDescent(self.init, (RidgeReadout(),), record=record, precision=64)
        return GradientDescent(
            self.init, (self._classifier(self.T, {"a": self.features_rate}),), record=record
        )

    def tangent(self, record: tuple[int, ...] = (), *, longer: int = 1) -> GradientDescent:
        """Return the network linearized at initialization (NTK), trained for `longer`·T steps."""
        rates = dict.fromkeys(("w", "b", "a"), self.tangent_rate)
        return GradientDescent(
            TangentInit(self.init), (self._classifier(longer * self.T, rates),), record=record
        )

    def _features(self, after: Literal[1, 2]) -> tuple[Descent, ...]:
        """Return the first one or two steps, on the whole sample."""
        first = Descent(
            dict.fromkeys(("w", "b", "a"), self.first),
            steps=1,
            full_decay=("w",),
            kept=self.kept or None,
            smoothing=self.noise or None,
            class_weighted=self.class_weighted,
        )
        second = Descent(
            dict.fromkeys(("w", "b", "a"), self.second),
            steps=1,
            full_decay=("w", "a"),
            smoothing=self.noise or None,
            class_weighted=self.class_weighted,
            spread=self.spread,
        )
        return (first, second)[:after]

    def _classifier(self, steps: int, rates: dict[str, float]) -> Descent:
        """Return minibatch steps without noise or decay; step sizes are divided by 10 at `drop`."""
        return Descent(
            rates,
            steps=steps,
            batch=self.batch,
            drop=self.drop if self.drop < 1 else None,
            class_weighted=self.always_weighted,
        )
