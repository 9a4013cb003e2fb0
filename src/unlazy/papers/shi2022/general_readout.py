"""General setting: gradients with class weights, and the best readout after two steps.

Reference: shi2022, Lemmas 38 and 48.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import PlainInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.general_neurons import GeneralNeurons, Hidden, general_components
from unlazy.papers.shi2022.readout import on_rows, smallest
from unlazy.papers.shi2022.setting import gradients
from unlazy.tasks.dictionary.incoherent import GeneralParity


class WeightedGradients(ExactComputation):
    """Gradients of this package's loss with class weights (295) and noise, by automatic
    differentiation, versus the formulas of Lemma 38, on a sample of the general family.

    `weights`, `biases`, `second`: largest difference of a gradient, divided by its largest entry.
    Negative controls: `printed` omits ξ in the gradient of b, as printed; `weighted` = False omits
    α_y.
    """

    family: GeneralParity
    m: int = eqx.field(static=True, default=12)
    examples: int = eqx.field(static=True, default=2_000)
    printed: bool = eqx.field(static=True, default=False)
    weighted: bool = eqx.field(static=True, default=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_task, key_fit = jax.random.split(key)
        noise = self.family.k**-1.5
        # Weights so large that some examples have y·g > 1.
        init = PlainInit(
            m=self.m, w_scale=1.0, b_scale=0.5, a_scale=1.0, activation="truncated_relu"
        )
        step = Descent(
            {"w": 1.0, "b": 1.0, "a": 1.0}, steps=1, smoothing=noise, class_weighted=True
        )
        learner = dataclasses.replace(GradientDescent(init, (step,), record=(0,)), precision=64)
        task = self.family.task(key=key_task)
        trace = eqx.filter_jit(lambda each: learner.fit(task.sampler, self.examples, key=each))(
            key_fit
        )
        models = trace.models
        assert isinstance(models, TwoLayer)
        x, y = (np.asarray(each, float) for each in trace.seen)
        (w, b, a), after = (
            [np.asarray(each[index], float) for each in (models.first_layer, models.b, models.a)]
            for index in (0, 1)
        )
        fraction = np.where(y > 0, np.mean(y > 0), np.mean(y < 0))
        weight = (0.5 / fraction if self.weighted else np.ones_like(y)) / len(y)
        formulas = gradients(w, b, a, x, y, weight, noise, printed=self.printed)
        found = [old - new for old, new in zip((w, b, a), after, strict=True)]
        gaps = [
            float(np.max(np.abs(own - formula)) / np.max(np.abs(own)))
            for own, formula in zip(found, formulas, strict=True)
        ]
        return dict(zip(("weights", "biases", "second"), gaps, strict=True))


class GeneralReadout(GeneralNeurons):
    """Second layer ã of minimum ‖ã‖_∞ with y·g̃(x) ≥ 1 on `examples` inputs, on the features after
    two exact population steps of Lemma 48.

    `loss`: mean hinge loss of g̃ on as many fresh inputs (1 if there is no such ã). "greatest":
    ‖ã‖_∞ divided by k⁵/m. Of the network itself: `second`, ‖a⁽²⁾‖_∞ divided by 1/(km²); `weights`,
    max ‖w_i⁽²⁾‖ divided by σ̃/k; `bias`, max |b_i⁽²⁾| divided by 1/k². Negative controls:
    `steps_taken` = 0 gives random features; `b_scale` is a factor on the initial biases.
    """

    examples: int = eqx.field(static=True, default=4_000, kw_only=True)
    steps_taken: int = eqx.field(static=True, default=2, kw_only=True)
    b_scale: float = eqx.field(static=True, default=1.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        of, rng = self.drawn(key)
        w, b, a = self.two_steps(of, rng)
        signed, fresh = (self._features(of, w, b, rng) for _ in range(2))
        solved = on_rows(signed, smallest)
        k = of.k
        return {
            "loss": 1.0 if solved is None else float(np.mean(np.maximum(0, 1 - fresh @ solved.a))),
            "greatest": (1e6 if solved is None else solved.value) * self.m / k**5,
            "second": float(np.max(np.abs(a))) * k * self.m**2,
            "weights": float(np.max(np.linalg.norm(w, axis=1))) * k / of.sigma,
            "bias": float(np.max(np.abs(b))) * k**2,
            "crowding": of.crowding,
        }

    def initial(self, of: Hidden, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
        """Draw a neuron w, b, a, which is typical with the probability of Lemma 37 only."""
        w = self.w_scale(of) * np.asarray(rng.normal(size=of.M.shape[1]))
        a_scale = of.sigma**2 / (of.gamma * of.k**2)
        return w, self.b_scale * rng.normal() / of.k**2, a_scale * rng.normal()

    def two_steps(
        self, of: Hidden, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return w, b, a of all 2m neurons after the two steps of Lemma 48."""
        rows = []
        for _ in range(self.m):
            w, b, a = self.initial(of, rng)
            if not self.steps_taken:
                rows += [(w, b, a), (w, b, -a)]
                continue
            first = general_components(of, w, b, self.noise)
            for sign in (1, -1):
                moved, bias, second = self.stepped(of, first, w, b, sign * a)
                found = general_components(of, moved, bias, self.noise)
                # η⁽²⁾ = 1 with full decay of w and a.
                rows.append(
                    (
                        second * (found.T @ of.M + found.nu),
                        bias + second * found.bias,
                        found.second,
                    )
                )
        return (
            np.array([row[0] for row in rows]),
            np.array([row[1] for row in rows]),
            np.array([row[2] for row in rows]),
        )

    def _features(
        self, of: Hidden, w: np.ndarray, b: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return label times feature of fresh inputs."""
        chosen = rng.choice(len(of.y), size=self.examples, p=of.probability / of.probability.sum())
        zeta = of.noise * rng.normal(size=(self.examples, of.M.shape[1])) / of.sigma
        x = of.phi[chosen] @ of.M + zeta
        return np.asarray(of.y[chosen, None] * np.clip(x @ w.T + b, 0, 1))
