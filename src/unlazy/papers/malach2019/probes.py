"""What layerwise learning found: gates recovered, the exact error, and the gates themselves."""

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

#: So many gate numbers of four bits fit into a double without rounding.
MOST_GATES = 13


class Recovered(Probe):
    """Learned circuits against the target, for learners on the host.

    `recovered`: share in percent of influencing gates recovered up to sign; `error`: exact error in
    percent; `exact`: 1 where every influencing gate is recovered and no error is left. `margin` = Δ
    and `epsilon` = ε of the target, which the theorems ask for.
    """

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, np.ndarray]:
        if not isinstance(task, CircuitTask):
            raise BadInput(f"Only circuits can be recovered, and a {type(task).__name__} is none.")
        circuit, law = task.circuit, task.input_law
        examine, known = Examiner(circuit, law), correlations(circuit, law)
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
    """`gates`: the numbers of all gates as the digits of one number in base 16, level 0 last in
    value. It may be traced.
    """

    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        gates = _gated(model).gates
        double = jnp.result_type(float) == jnp.float64
        require(
            double and len(gates) <= MOST_GATES,
            f"Up to {MOST_GATES} gates fit into a number of double precision.",
        )
        return {"gates": jnp.sum(gates.astype(float) * 16.0 ** jnp.arange(float(len(gates))))}


def circuit_of(number: float, n: int) -> Circuit:
    """The circuit of n inputs whose gates `Gates` wrote as one number."""
    return Circuit((int(number) >> 4 * np.arange(n - 1)) & 15)


def _gated(model: Model) -> CircuitModel | TreeNetwork:
    if not isinstance(model, (CircuitModel, TreeNetwork)):
        raise BadInput(f"A {type(model).__name__} has no gates to look at.")
    return model
