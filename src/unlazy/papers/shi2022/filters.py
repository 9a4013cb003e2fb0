"""Table 7, Figures 20 and 21: filters of a residual network, and their gradients in the first
steps.

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
from unlazy.lab.rules import Scale, arm, shuffled
from unlazy.learners.base import Trace
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.image_resnet import BLOCKS, STAGES, ImageResNet, ImageResNetInit
from unlazy.papers.shi2022.structure import RESIDUAL
from unlazy.probes.base import Probe
from unlazy.probes.clusters import unit_rows
from unlazy.tasks.base import Data
from unlazy.tasks.images.families import ImageClasses

#: Steps over which gradients are averaged, and how many such trunks there are.
TRUNK, TRUNKS = 10, 3
#: Steps after which models are kept: with momentum, the sum of gradients over a trunk is told by
#: its ends and the steps before them.
EARLY = (0, 9, 10, 19, 20, 29, 30)
MOMENTUM = 0.9
#: Each of the two clusters of a block is the share of filters nearest to its centre; rounds of
#: choosing them anew.
NEAREST, ROUNDS = 0.2, 20


def _rows(kernel: Float[Array, "s s i o"]) -> Float[Array, "o d"]:
    return kernel.reshape(-1, kernel.shape[-1]).T


def two_clusters(units: Float[Array, "o d"]) -> tuple[Float[Array, "2 d"], Int[Array, "2 k"]]:
    """Two centres and their members: the fifth of the filters nearest to each.

    They start from the main direction and its opposite.
    """
    count = min(len(units), max(2, round(NEAREST * len(units))))

    def members(centres: Float[Array, "2 d"]) -> Int[Array, "2 k"]:
        return jax.lax.top_k(centres @ units.T, count)[1]

    def again(_: Any, centres: Float[Array, "2 d"]) -> Float[Array, "2 d"]:
        return unit_rows(jnp.mean(units[members(centres)], axis=1))

    gram = units @ units.T
    # Its main eigenvector by powers; the start is the filter with the largest products, so that
    # nothing is random.
    vector = jax.lax.fori_loop(
        0,
        50,
        lambda _, v: unit_rows(gram @ v),
        unit_rows(gram[jnp.argmax(jnp.sum(gram**2, axis=1))]),
    )
    direction = unit_rows(vector @ units)
    centres = jax.lax.fori_loop(0, ROUNDS, again, jnp.stack([direction, -direction]))
    return centres, members(centres)


class FilterClusters(Probe):
    """Clusters of filters in each residual stage, chosen at the end: `within_1`, … `within_4`, the
    mean cosine of both clusters' members to the centre at that step; `between_1`, …, the cosine of
    the two centres; `turned`: how far filters are from where they started, as one minus the mean
    cosine over the filters of all four stages; `early_times_late`: their mean angle of turning a
    step up to step 30, in multiples of that a step from the last record before the end to the end.
    """

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        stages = [unit_rows(stage) for stage in _stages(trace)]  # s o d each
        measured: dict[str, Array] = {}
        for number, units in enumerate(stages, start=1):
            _, members = two_clusters(units[-1])
            chosen = units[:, members]  # s 2 k d
            centres = unit_rows(jnp.mean(chosen, axis=2))
            measured[f"within_{number}"] = jnp.mean(
                jnp.einsum("sckd,scd->sck", chosen, centres), axis=(1, 2)
            )
            measured[f"between_{number}"] = jnp.einsum("sd,sd->s", centres[:, 0], centres[:, 1])
        turns = [
            1 - jnp.mean(jnp.einsum("sod,od->so", units, units[0]), axis=1) for units in stages
        ]
        *_, before, last = trace.steps
        early, late = (
            _turn_a_step(stages, trace.steps, *span) for span in ((0, EARLY[-1]), (before, last))
        )
        ratio = jnp.broadcast_to(
            early / jnp.maximum(late, jnp.finfo(early.dtype).tiny), len(trace.steps)
        )
        return measured | {"turned": jnp.mean(jnp.stack(turns), axis=0), "early_times_late": ratio}


def _turn_a_step(
    stages: list[Float[Array, "s _ _"]], steps: tuple[int, ...], begin: int, end: int
) -> Float[Array, ""]:
    """The mean angle between filters at two steps, over the steps between them."""
    first, second = steps.index(begin), steps.index(end)
    angles = [
        jnp.arccos(jnp.clip(jnp.sum(units[first] * units[second], axis=1), -1, 1))
        for units in stages
    ]
    return jnp.mean(jnp.stack([jnp.mean(angle) for angle in angles])) / (end - begin)


def _stages(trace: Trace) -> list[Float[Array, "s _ _"]]:
    if not isinstance(trace.models, ImageResNet):
        raise BadInput(f"Filters are those of ResNet(m), not of {type(trace.models).__name__}.")
    return [
        jax.vmap(_rows)(trace.models.filters[stage * BLOCKS + BLOCKS - 1].second)
        for stage in range(len(STAGES))
    ]


class EarlyGradients(Probe):
    """Cosines of the gradients of one filter, averaged over steps 1–10, 11–20 and 21–30: v₁, v₂,
    v₃.

    `mean_1_cosine`, … to their mean v̄; `pair_12_cosine`, … to each other. The filter is that of
    the last stage which is nearest to the centre of the first cluster at the end. Gradients come
    from the recorded models: with p ← p − η·u and u ← β·u + g, the g of the steps a+1, …, b add up
    to −[(p_b − p_a) − β·(p_{b−1} − p_{a−1})]/η, where p_{−1} = p_0.
    """

    momentum: float = eqx.field(converter=float, default=MOMENTUM)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        require(
            set(EARLY) <= set(trace.steps),
            f"The steps {EARLY} must be recorded, but {trace.steps} are.",
        )
        filters = _stages(trace)[-1]  # s o d
        units = unit_rows(filters[-1])
        centres, _ = two_clusters(units)
        path = filters[:, jnp.argmax(units @ centres[0])]  # s d

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
    """`final_accuracy` in percent: of the last model on `test` examples.

    Looking at all recorded models would take as long as training.
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
    """Filters m, examples, steps, batch, test examples, and the side to which images are
    averaged.
    """

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
#: The name of the network that laptop and paper scale share in the checks; at paper scale it is the
#: smaller of the two.
JUDGED = "ResNet(m)"


def filters_gather(scale: Scale) -> dict[str, StudyArm]:
    """ResNet(m) on airplanes and automobiles, the smallest m under the name by which it is judged,
    the others under their own.
    """
    size = FILTERS[scale]
    family = ImageClasses("cifar10", chosen=(0, 1), side=size.side)
    found: dict[str, StudyArm] = {}
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
        found[f"ResNet({m})"] = Arm(
            family, learner, size.n, (FinalAccuracy(size.test), FilterClusters(), EarlyGradients())
        )
    return {JUDGED: found[f"ResNet({size.widths[0]})"], **(found if scale == "paper" else {})}


_COSINES = (
    *(f"mean_{trunk}_cosine" for trunk in (1, 2, 3)),
    "pair_12_cosine",
    "pair_13_cosine",
    "pair_23_cosine",
)

judged = arm(JUDGED)
TABLE7 = Claim(
    id="shi2022/table7",
    where="Table 7, Figures 20, 21 (Appendix E.4.1)",
    kind="table",
    statement=(
        "In ResNet(m) trained on airplanes and automobiles of CIFAR-10 the gradients of a filter "
        "in the early steps point to similar directions, filters change far more early in "
        "training than later, and filters of all residual blocks show clusters whose members are "
        "similar and whose centres point apart."
    ),
    study=filters_gather,
    checks=(
        *(judged[measure] >= 0.3 for measure in _COSINES),
        judged.early_times_late >= 2.0,
        *(judged[f"within_{n}"] - judged[f"within_{n}"][0] >= 0.05 for n in (1, 2, 3, 4)),
        *(judged[f"between_{n}"] <= -0.2 for n in (1, 2, 3, 4)),
    ),
    published=published("shi2022/table7.csv"),
    seeds={"smoke": 1, "laptop": 3, "paper": 3},
    control=shuffled(filters_gather),
    plots=(
        Plot(
            title="Filters turn early",
            x="gradient step",
            y="1 − mean cosine to the start",
            series=(PlotLine(JUDGED, "turned", "all four blocks"),),
        ),
        Plot(
            title="Members of the two clusters of each block",
            x="gradient step",
            y="mean cosine to the centre",
            series=tuple(PlotLine(JUDGED, f"within_{n}", f"block {n}") for n in (1, 2, 3, 4)),
        ),
    ),
    **notes("shi2022/table7"),
)
