"""Measurements on training traces.

Scalars are stored in a record's measurements, arrays in its arrays.
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
    """Measurement of a trace on a task: `(task, trace) -> {name: one entry per recorded step}`.

    A probe may use the ground truth of the task.
    """

    @abstractmethod
    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> Mapping[str, Array | np.ndarray]:
        """Return the measurements; `found` holds those of the preceding probes."""


class ModelProbe(Probe):
    """Measurement of single models, applied to each model of a trace."""

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        result: dict[str, Array] = trace.each(
            lambda model: self.look(task, model, seen=trace.seen, key=key)
        )
        return result

    @abstractmethod
    def look(self, task: Data, model: Model, *, seen: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        """Return the measurements of one model.

        `seen` holds training examples by coordinates (see `Sampler`); `key` is the same for all
        models.
        """
