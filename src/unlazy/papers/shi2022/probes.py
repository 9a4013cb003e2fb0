"""Incoherence of a dictionary.

Reference: shi2022, Appendix F.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.errors import BadInput
from unlazy.learners.base import Trace
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data
from unlazy.tasks.dictionary.incoherent import GeneralPatterns


class Incoherence(Probe):
    """`mu`: incoherence μ of the dictionary; `crowding`: Dμ/√d, at most 1/16 in Lemma 36."""

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        if not isinstance(task, GeneralPatterns):
            name = type(task).__name__
            raise BadInput(f"`Incoherence` requires a task with a dictionary, got {name}.")
        D, d = task.dictionary.shape
        mu = jnp.full(len(trace.steps), task.mu)
        return {"mu": mu, "crowding": D * mu / d**0.5}
