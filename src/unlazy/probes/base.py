"""What a probe is: it looks at a trace, and so at how training went.

Numbers go into a record's measurements, arrays into its arrays.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.learners.base import Trace
from unlazy.networks.base import Model
from unlazy.tasks.base import Batch, Data


class Probe(eqx.Module):
    """Measures a whole trace on a task: `(task, trace) -> {name: one entry for each recorded
    step}`. It may read the secret.
    """

    @abstractmethod
    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> Mapping[str, Array | np.ndarray]:
        """Measure. `found` is what the probes before this one found."""


class ModelProbe(Probe):
    """Measures one model; a trace is measured model by model."""

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        result: dict[str, Array] = trace.each(
            lambda model: self.look(task, model, seen=trace.seen, key=key)
        )
        return result

    @abstractmethod
    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Measure one model.

        `seen` holds training examples by coordinates (see `Sampler`), `key` is the same for all
        models.
        """
