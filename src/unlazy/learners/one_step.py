"""Feature learning by one gradient step on the first layer, followed by ridge regression.

Weights are small and biases large at initialization, so neurons with b > 0 are active on the whole
sample. A step with full decay then sets their weights to multiples of the mean of y·x. All neurons
have this direction, with different thresholds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from unlazy.core.metrics import Outputs
from unlazy.learners.base import Learner
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.readout import RidgeReadout
from unlazy.networks.inits import AntisymmetricInit

#: Ridges of the readout for tuning, in order of priority.
RIDGES = (1e-4, 1e-3, 1e-5, 1e-2, 1e-6, 1e-1)
#: Root mean squares of ⟨w, x⟩ after the step, for biases of standard deviation 1.
SPREADS = (1.0, 0.3, 3.0, 0.1)


class ReadoutDescent(GradientDescent):
    """Gradient descent whose first stage is a step with full decay and whose last is a readout.

    Tuning varies the spread of the first and the ridge of the last stage.
    """

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        spreads = SPREADS[: max(1, budget // len(RIDGES))]
        return tuple(
            self.with_settings(spread, ridge)
            for spread in spreads
            for ridge in RIDGES[: min(budget, len(RIDGES))]
        )

    def with_settings(self, spread: float, ridge: float) -> ReadoutDescent:
        """Return the learner with another spread and ridge."""
        first, *between, _ = self.stages
        assert isinstance(first, Descent)
        return dataclasses.replace(
            self, stages=(dataclasses.replace(first, spread=spread), *between, RidgeReadout(ridge))
        )

    def suits(self, outputs: Outputs) -> bool:
        """Return whether the outputs are signs, or no stage has the hinge loss."""
        return outputs.kind == "signs" or all(
            stage.loss != "hinge" for stage in self.stages if isinstance(stage, Descent)
        )

    @property
    def settings(self) -> Mapping[str, float | str]:
        first, last = self.stages[0], self.stages[-1]
        assert (
            isinstance(first, Descent)
            and isinstance(last, RidgeReadout)
            and first.spread is not None
        )
        return {"spread": first.spread, "ridge": last.ridge}


def _init(m: int) -> AntisymmetricInit:
    return AntisymmetricInit(m=m, w_scale=0.02, b_scale=1.0, a_scale=1.0, activation="relu")


def one_step_readout(
    m: int = 128, *, spread: float = 1.0, ridge: float = 1e-4, record: tuple[int, ...] = ()
) -> ReadoutDescent:
    """Return the learner with one step of 2m neurons on inputs of unit norm, then the readout."""
    first = Descent({"w": 1.0}, steps=1, full_decay=("w",), spread=spread, loss="natural")
    return ReadoutDescent(_init(m), (first, RidgeReadout(ridge)), record=record, precision=64)


def first_step_network(
    m: int = 128,
    *,
    steps: int = 1000,
    rate: float = 0.03,
    record: tuple[int, ...] = (),
) -> ReadoutDescent:
    """Return the learner with `steps` of SGD on both layers between first step and readout.

    Biases are not trained. The penalty on the first layer reduces the noise of the first step.
    """
    first = Descent(
        {"w": 1.0, "a": 1e-3}, steps=1, full_decay=("w", "a"), spread=1.0, loss="natural"
    )
    descent = Descent(
        {"w": rate, "a": rate},
        steps=steps,
        batch=100,
        loss="hinge",
        momentum=0.9,
        drop=0.75,
        decay={"w": 1e-3},
    )
    return ReadoutDescent(
        _init(m), (first, descent, RidgeReadout(1e-5)), record=record, precision=64
    )
