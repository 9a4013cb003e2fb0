"""Table 7, Figures 20 and 21: filters of a residual network, and their early gradients.

Reference: shi2022, Appendix E.4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.metrics import accuracy
from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes, published
from unlazy.lab.rules import Check, Scale, arm, shuffled
from unlazy.learners.base import Trace
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.image_resnet import BLOCKS, STAGES, ImageResNet, ImageResNetInit
from unlazy.papers.shi2022.structure import RESIDUAL
from unlazy.probes.base import Probe
from unlazy.probes.clusters import unit_rows
from unlazy.tasks.base import Data
from unlazy.tasks.images.families import ImageClasses

#: Steps per averaged gradient, and number of averages.
TRUNK, TRUNKS = 10, 3
#: Recorded steps: with momentum, the sum of gradients from step a + 1 to b follows from the weights
#: at a − 1, a, b − 1 and b.
EARLY = (0, 9, 10, 19, 20, 29, 30)
MOMENTUM = 0.9
#: Fraction of filters in each of the two clusters of a block, and iterations of the clustering.
NEAREST, ROUNDS = 0.2, 20


def _rows(kernel: Float[Array, "s s i o"]) -> Float[Array, "o d"]:
    return kernel.reshape(-1, kernel.shape[-1]).T


def two_clusters(units: Float[Array, "o d"]) -> tuple[Float[Array, "2 d"], Int[Array, "2 k"]]:
    """Return two centers and their members, the fifth of the filters nearest to each.

    The centers are initialized at the main direction and its opposite.
    """
    count = min(len(units), max(2, round(NEAREST * len(units))))

    def members(centers: Float[Array, "2 d"]) -> Int[Array, "2 k"]:
        return jax.lax.top_k(centers @ units.T, count)[1]

    def update(_: Any, centers: Float[Array, "2 d"]) -> Float[Array, "2 d"]:
        return unit_rows(jnp.mean(units[members(centers)], axis=1))

    gram = units @ units.T
    # Main eigenvector by power iteration, initialized deterministically.
    vector = jax.lax.fori_loop(
        0,
        50,
        lambda _, v: unit_rows(gram @ v),
        unit_rows(gram[jnp.argmax(jnp.sum(gram**2, axis=1))]),
    )
    direction = unit_rows(vector @ units)
    centers = jax.lax.fori_loop(0, ROUNDS, update, jnp.stack([direction, -direction]))
    return centers, members(centers)


class FilterClusters(Probe):
    """Two clusters of filters per residual stage, found at the last step.

    `within_1`, …, `within_4`: mean cosine of the members of both clusters to their center at each
    recorded step. `between_1`, …: cosine of the two centers. `turned`: one minus the mean cosine
    between filters and their initial values, averaged over the four stages. `early_times_late`:
    mean rotation angle per step up to step 30, divided by that from the last recorded step before
    the end to the end.
    """

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        stages = [unit_rows(stage) for stage in _stages(trace)]  # s o d each
        measured: dict[str, Array] = {}
        for number, units in enumerate(stages, start=1):
            _, members = two_clusters(units[-1])
            chosen = units[:, members]  # s 2 k d
            centers = unit_rows(jnp.mean(chosen, axis=2))
            measured[f"within_{number}"] = jnp.mean(
                jnp.einsum("sckd,scd->sck", chosen, centers), axis=(1, 2)
            )
            measured[f"between_{number}"] = jnp.einsum("sd,sd->s", centers[:, 0], centers[:, 1])
        turns = [
            1 - jnp.mean(jnp.einsum("sod,od->so", units, units[0]), axis=1) for units in stages
        ]
        *_, before, last = trace.steps
        early, late = (
            _angle_per_step(stages, trace.steps, *span) for span in ((0, EARLY[-1]), (before, last))
        )
        ratio = jnp.broadcast_to(
            early / jnp.maximum(late, jnp.finfo(early.dtype).tiny), len(trace.steps)
        )
        return measured | {"turned": jnp.mean(jnp.stack(turns), axis=0), "early_times_late": ratio}


def _angle_per_step(
    stages: list[Float[Array, "s _ _"]], steps: tuple[int, ...], begin: int, end: int
) -> Float[Array, ""]:
    """Return the mean angle between filters at two steps, divided by their distance in steps."""
    first, second = steps.index(begin), steps.index(end)
    angles = [
        jnp.arccos(jnp.clip(jnp.sum(units[first] * units[second], axis=1), -1, 1))
        for units in stages
    ]
    return jnp.mean(jnp.stack([jnp.mean(angle) for angle in angles])) / (end - begin)


def _stages(trace: Trace) -> list[Float[Array, "s _ _"]]:
    if not isinstance(trace.models, ImageResNet):
        raise BadInput(f"This probe requires ResNet(m), got {type(trace.models).__name__}.")
    return [
        jax.vmap(_rows)(trace.models.filters[stage * BLOCKS + BLOCKS - 1].second)
        for stage in range(len(STAGES))
    ]


class EarlyGradients(Probe):
    """Cosines of the gradients v₁, v₂, v₃ of one filter, averaged over steps 1–10, 11–20 and 21–30.

    `mean_1_cosine`, …: cosine to their mean v̄. `pair_12_cosine`, …: cosines between them. The
    filter is the one of the last stage nearest to the center of the first cluster at the end.
    Gradients follow from the recorded weights p: with p ← p − η·u and u ← β·u + g, the sum of g
    over steps a + 1, …, b is −[(p_b − p_a) − β·(p_{b−1} − p_{a−1})]/η, where p_{−1} = p_0.
    """

    momentum: float = eqx.field(converter=float, default=MOMENTUM)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        require(
            set(EARLY) <= set(trace.steps),
            f"Steps {EARLY} must be recorded, got {trace.steps}.",
        )
        filters = _stages(trace)[-1]  # s o d
        units = unit_rows(filters[-1])
        centers, _ = two_clusters(units)
        path = filters[:, jnp.argmax(units @ centers[0])]  # s d

        def at(step: int) -> Float[Array, " d"]:
            return path[trace.steps.index(max(step, 0))]

        ends = [(TRUNK * trunk, TRUNK * (trunk + 1)) for trunk in range(TRUNKS)]
        sums = jnp.stack(
            [self.momentum * (at(b - 1) - at(a - 1)) - (at(b) - at(a)) for a, b in ends]
        )
        v, mean = unit_rows(sums), unit_rows(jnp.mean(sums, axis=0))
        values = {f"mean_{trunk + 1}_cosine": v[trunk] @ mean for trunk in range(TRUNKS)}
        values |= {f"pair_{i + 1}{j + 1}_cosine": v[i] @ v[j] for i, j in ((0, 1), (0, 2), (1, 2))}
        return {
            name: jnp.broadcast_to(value, (len(trace.steps),)) for name, value in values.items()
        }


class FinalAccuracy(Probe):
    """`final_accuracy`: accuracy of the last model on `test` examples, in percent.

    Evaluating all recorded models would take as long as training.
    """

    test: int = eqx.field(static=True, default=1000)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        x, y = task.test(self.test, key)
        return {
            "final_accuracy": jnp.broadcast_to(accuracy(trace.at(-1)(x), y), (len(trace.steps),))
        }


class FilterSizes(NamedTuple):
    """Widths m, examples, steps, batch, test examples, and side to which images are averaged."""

    widths: tuple[int, ...]
    n: int
    steps: int
    batch: int
    test: int
    side: int | None


FILTERS: dict[Scale, FilterSizes] = {
    "smoke": FilterSizes((2,), 40, 32, 8, 20, 8),
    "laptop": FilterSizes((16,), 10_000, 600, 64, 1_000, 16),
    "paper": FilterSizes((128, 256), 10_000, 1_560, 128, 2_000, None),
}
RATE = 0.1
#: Arm that the checks use: the network of smallest m at each scale.
TESTED = "ResNet(m)"


def filter_clusters(scale: Scale) -> dict[str, StudyArm]:
    """Return ResNet(m) on airplanes and automobiles: `TESTED`, and at paper scale every m."""
    size = FILTERS[scale]
    family = ImageClasses("cifar10", chosen=(0, 1), side=size.side)
    arms: dict[str, StudyArm] = {}
    for m in size.widths:
        descent = Descent(
            {g: RATE for g in RESIDUAL},
            steps=size.steps,
            batch=size.batch,
            loss="logistic",
            momentum=MOMENTUM,
        )
        learner = GradientDescent(
            ImageResNetInit(m), (descent,), record=(*EARLY, size.steps * 3 // 20)
        )
        arms[f"ResNet({m})"] = Arm(
            family, learner, size.n, (FinalAccuracy(size.test), FilterClusters(), EarlyGradients())
        )
    return {TESTED: arms[f"ResNet({size.widths[0]})"], **(arms if scale == "paper" else {})}


_COSINES = (
    *(f"mean_{trunk}_cosine" for trunk in (1, 2, 3)),
    "pair_12_cosine",
    "pair_13_cosine",
    "pair_23_cosine",
)

#: Quantities for which the check also holds for shuffled labels.
_IN_CONTROL = ("mean_1_cosine", "mean_2_cosine", "pair_12_cosine", "between_3", "between_4")


def _unless_in_control(check: Check) -> Check:
    return check.refuting() if check.quantity.measure in _IN_CONTROL else check


tested = arm(TESTED)
TABLE7 = Claim(
    id="shi2022/table7",
    where="Table 7, Figures 20, 21 (Appendix E.4.1)",
    kind="table",
    statement=(
        "In ResNet(m) trained on airplanes and automobiles of CIFAR-10, the gradients of a filter "
        "in the early steps have similar directions, filters change far more early in training "
        "than later, and the filters of every residual block form clusters whose members are "
        "similar and whose centers have negative cosine similarity."
    ),
    study=filter_clusters,
    checks=(
        *(_unless_in_control(tested[measure] >= 0.3) for measure in _COSINES),
        tested.early_times_late >= 2.0,
        *(tested[f"within_{n}"] - tested[f"within_{n}"][0] >= 0.05 for n in (1, 2, 3, 4)),
        *(_unless_in_control(tested[f"between_{n}"] <= -0.2) for n in (1, 2, 3, 4)),
    ),
    published=published("shi2022/table7.csv"),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    control=shuffled(filter_clusters),
    plots=(
        Plot(
            title="Rotation of filters",
            x="gradient step",
            y="1 − mean cosine to the initial filter",
            series=(PlotLine(TESTED, "turned", "mean of four blocks"),),
        ),
        Plot(
            title="Members of the two clusters of each block",
            x="gradient step",
            y="mean cosine to the center",
            series=tuple(PlotLine(TESTED, f"within_{n}", f"block {n}") for n in (1, 2, 3, 4)),
        ),
    ),
    **notes("shi2022/table7"),
)
