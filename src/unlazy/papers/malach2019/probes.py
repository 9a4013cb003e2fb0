"""Probes of layerwise learning: recovered gates, exact error, and the learned gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.learners.base import Trace
from unlazy.learners.circuits.layerwise import CircuitModel
from unlazy.networks.base import Model
from unlazy.networks.tree import TreeNetwork
from unlazy.probes.base import ModelProbe, Probe
from unlazy.tasks.base import Batch, Data
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.families import CircuitTask
from unlazy.tasks.circuits.recovery import Examiner

#: Number of four-bit gates that fit exactly into a float64.
MAX_GATES = 13


class Recovered(Probe):
    """Comparison of learned circuits with the target, for learners on the host.

    `recovered`: percentage of influencing gates recovered up to sign; `error`: exact error in
    percent; `exact`: 1 if every influencing gate is recovered and the error is zero. `margin` = Δ
    and `epsilon` = ε of the target, as in the theorems.
    """

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, np.ndarray]:
        if not isinstance(task, CircuitTask):
            raise BadInput(f"`Recovered` needs a circuit task, got {type(task).__name__}.")
        circuit, distribution = task.circuit, task.input_distribution
        examine, known = Examiner(circuit, distribution), correlations(circuit, distribution)
        rows = []
        for index in range(len(trace.steps)):
            seen = examine(_gated(trace.at(index)).circuit)
            rows.append(
                [100 * seen.share, 100 * seen.error, float(seen.exact), known.margin, known.epsilon]
            )
        return dict(
            zip(
                ("recovered", "error", "exact", "margin", "epsilon"),
                np.array(rows, float).T,
                strict=True,
            )
        )


class Gates(ModelProbe):
    """Learned gates as one number; usable under `jit`.

    `gates`: the gate numbers as digits in base 16; the output gate is the lowest digit.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        gates = _gated(model).gates
        double = jnp.result_type(float) == jnp.float64
        require(
            double and len(gates) <= MAX_GATES,
            f"`Gates` needs float64 and at most {MAX_GATES} gates, got {len(gates)} gates.",
        )
        return {"gates": jnp.sum(gates * 16.0 ** jnp.arange(len(gates)))}


def circuit_of(number: float, n: int) -> Circuit:
    """Return the circuit of n inputs from the number that `Gates` measured."""
    return Circuit((int(number) >> 4 * np.arange(n - 1)) & 15)


def _gated(model: Model) -> CircuitModel | TreeNetwork:
    if not isinstance(model, (CircuitModel, TreeNetwork)):
        raise BadInput(f"The model must have gates, got {type(model).__name__}.")
    return model
