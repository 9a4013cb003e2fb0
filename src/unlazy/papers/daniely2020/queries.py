"""Statistical queries: the hidden bits are found on the mixture, and not on uniform inputs.

Reference: daniely2020, Section 2 (distribution).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.lab.trials import ExactComputation
from unlazy.learners.sources import QueryOracle
from unlazy.tasks.base import Population
from unlazy.tasks.equal_bits import EqualBits


class BitQueries(ExactComputation):
    """Answers of an adversarial oracle to the d queries E[y·z_j], z_j = √d·x_j, over its tolerance.

    `recognized`: fraction of the bits j whose answer is above 1/4 if and only if j is in A.
    `tolerances` are in percent of 1/4. `structured`: fraction of the all-equal part.
    """

    tolerances: tuple[int, ...] = eqx.field(static=True)
    d: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    structured: float = eqx.field(static=True, default=0.5)

    axis = "tolerances"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        task = EqualBits(d=self.d, k=self.k, structured=self.structured).task(key=key)
        assert task.population is not None
        population = task.population()
        assert isinstance(population, Population)
        hidden = np.isin(np.arange(self.d), np.asarray(task.where))

        def query(x: Float[Array, "p d"], y: Float[Array, " p"]) -> Float[Array, "p d"]:
            return y[:, None] * jnp.sign(x)

        found = []
        for tolerance in self.tolerances:
            oracle = QueryOracle.of(tolerance / 400, "adversarial")
            answers = np.asarray(oracle.ask(query, population, key=key))
            found.append(np.mean((answers > 0.25) == hidden))
        return {"recognized": np.array(found)}


def queries(scale: Scale, structured: float = 0.5) -> dict[str, StudyArm]:
    """Return tolerances just below 1/4, and smaller ones."""
    d, k = {"smoke": (7, 3), "laptop": (11, 5), "paper": (13, 7)}[scale]
    return {"oracle": BitQueries((4, 50, 99), d, k, structured, precision=64)}


oracle = arm("oracle")
STATISTICAL_QUERIES = Claim(
    id="daniely2020/statistical-queries",
    where="none; the distribution of Section 2",
    kind="lemma",
    source="ours",
    statement=(
        "On the distribution of Section 2 the bits of A are determined by n statistical queries, "
        "the correlations E[y·z_j] with z_j = √n·x_j, whose answers are moved adversarially by up "
        "to a tolerance below 1/4. On uniform inputs all these correlations are 0 for every A."
    ),
    study=queries,
    checks=tuple(oracle.recognized[tolerance] >= 1.0 for tolerance in (4, 50, 99)),
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    min_seeds=1,
    control=Control("the all-equal part is absent", lambda scale: queries(scale, 0.0)),
    **notes("daniely2020/statistical-queries"),
)
