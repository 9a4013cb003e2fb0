"""Theorems 2 and 3: what no weights on a kernel's span, and none on few features, can learn;
exactly, by enumeration of a cube.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.kernels.base import Kernel
from unlazy.kernels.catalog import KERNELS
from unlazy.kernels.feature_maps import Features, RandomFeatures, featured
from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Condition, Control, Scale, arm, arms
from unlazy.lab.trials import ExactComputation
from unlazy.learners.kernel import KernelRidge
from unlazy.probes.performance import Performance
from unlazy.tasks.hierarchy import HardInstance
from unlazy.theory.spans import ENOUGH, rank_leverages, span_risks
from unlazy.theory.walsh import points

#: The theorems allow C(d₁, k) over this many examples or features, and speak of this share of all
#: targets.
THRESHOLD, SHARE = 1000, 0.99
ALPHA = 0.3
DIMENSION: dict[Scale, int] = {"smoke": 14, "laptop": 16, "paper": 18}


def allowed(d: int, k: int) -> int:
    """C(d, k)/1000, rounded down."""
    return math.comb(d, k) // THRESHOLD


def _columns(kernel: Kernel, x: Any, z: Any) -> Any:
    return kernel(x, z)


class SpanRisk(ExactComputation):
    """The least risk that any weights reach on H_i = x_i + α·χ_S, for every S of size k: over the
    span of kernel functions of N random points of a cube, or of as many features. The axis is k.

    `share_hard`: the share of the S with a risk above α²/16 whatever i ∈ S; `least_risk`: the least
    of all, in units of α²; `mean_captured`: the mean share of χ_S in the span. `examples`: N, by
    default C(d, k)/1000.
    """

    what: Kernel | Features
    d: int = eqx.field(static=True)
    degrees: tuple[int, ...] = eqx.field(static=True)
    alpha: float = eqx.field(converter=float, default=ALPHA)
    examples: int | None = eqx.field(static=True, default=None)

    axis = "degrees"

    def _values(self, n: int, key: PRNGKeyArray) -> np.ndarray:
        """The N functions at all points, whose norm is one as kernels expect."""
        x = points(self.d) / math.sqrt(self.d)
        if isinstance(self.what, Features):
            return np.asarray(featured(self.what.draw(self.d, key=key), x), np.float64)
        rng = host_generator(key)
        # Different points: with few of them a random draw may repeat one, which gives nothing new.
        seen = x[rng.choice(len(x), n, replace=False)]
        scale = self.what.input_scale(self.d)
        parts = [
            np.asarray(_columns(self.what, jnp.asarray(scale * part), jnp.asarray(scale * seen)))
            for part in np.array_split(x, 8)
        ]
        return np.concatenate(parts)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        found: dict[str, list[float]] = {
            "share_hard": [],
            "least_risk": [],
            "mean_captured": [],
            "functions": [],
        }
        for place, k in enumerate(self.degrees):
            n = self.examples or allowed(self.d, k)
            risks, captured = span_risks(
                self._values(n, jax.random.fold_in(key, place)), k, self.alpha
            )
            found["share_hard"].append(float(np.mean(risks > self.alpha**2 / 16)))
            found["least_risk"].append(float(np.min(risks)) / self.alpha**2)
            found["mean_captured"].append(float(np.mean(captured)))
            found["functions"].append(float(n))
        return {name: np.array(values) for name, values in found.items()}


class RankArgument(ExactComputation):
    """Lemma D.2: of R columns of M ∈ R^{N×R}, how many can be singled out; random matrices, and the
    worst, made of unit vectors.

    `singled_out`: the greatest share over all matrices; `over_bound`: the same over N/(0.9·R),
    which is sharp.
    """

    n: int = eqx.field(static=True, default=20)
    columns: int = eqx.field(static=True, default=40)
    matrices: int = eqx.field(static=True, default=20)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        shares = []
        for place in range(self.matrices):
            M = rng.normal(size=(self.n, self.columns))
            if place == 0:
                M = np.eye(self.n, self.columns)
            elif place % 2:
                M *= np.exp(
                    3 * rng.normal(size=self.columns)
                )  # a few columns far larger than the rest
            shares.append(float(np.mean(rank_leverages(M) >= ENOUGH)))
        share = max(shares)
        return {"singled_out": share, "over_bound": share * ENOUGH * self.columns / self.n}


def degrees_of(d: int) -> tuple[int, ...]:
    """The three degrees at which C(d, k)/1000 allows the most examples."""
    best = sorted(
        (k for k in range(2, d // 2 + 1) if allowed(d, k) > 0), key=lambda k: -allowed(d, k)
    )[:3]
    return tuple(sorted(best))


def lower_bounds(scale: Scale, *, slipped: bool = False) -> dict[str, StudyArm]:
    """The span of every kernel of the shelf, two laws of features, two kernels as they learn, and
    the rank argument.

    `slipped`: at d = 8, with as many examples as there are inputs.
    """
    d = 8 if slipped else DIMENSION[scale]
    degrees = (4,) if slipped else degrees_of(d)
    examples = 1 << d if slipped else None
    most = examples or max(allowed(d, k) for k in degrees)
    width = 1 << 10 if slipped else most
    arms: dict[str, StudyArm] = {}
    for name, entry in KERNELS.items():
        if slipped and name in ("linear", "quadratic", "polynomial", "arc-cosine", "nngp", "ntk"):
            continue  # whose spans stay small, or have no products of odd degree
        arms[name] = SpanRisk(entry.value, d, degrees, examples=examples, precision=64)
    for kind in ("relu", "fourier"):
        features = RandomFeatures(kind, width=width, bandwidth=2.0)
        arms[f"{kind} features"] = SpanRisk(features, d, degrees[-1:], examples=width, precision=64)
    k = degrees[-1]
    family = HardInstance(d=d, k=2 if slipped else k, alpha=ALPHA)
    for name in ("rbf", "ntk"):
        learner = KernelRidge(KERNELS[name].value, (1e-4,))
        arms[f"{name}, trained"] = Arm(
            family,
            learner,
            2_000 if slipped else most,
            (Performance(2_000 if scale == "smoke" else 10_000),),
        )
    return arms | {"rank": RankArgument(columns=20 if slipped else 40, precision=64)}


_SPANS = (*KERNELS, "relu features", "fourier features")

rank = arm("rank")
LOWER_BOUNDS = Claim(
    id="allenzhu2019/theorem2-3",
    where="Theorems 2 and 3 (Section 7), Lemma D.2",
    kind="bound",
    statement=(
        "Targets (7.1): k of d₁ coordinates, plus α times their product. With N ≤ C(d₁, k)/1000 "
        "examples, for at least 99 % of the targets, every combination of the N functions K(·, "
        "x⁽ⁿ⁾) of any kernel has a risk above α²/16; so has every linear function of any D ≤ "
        "C(d₁, k)/1000 features. The reason is a rank: of R ≥ 2N columns of a matrix of N rows "
        "not all can be singled out."
    ),
    study=lower_bounds,
    checks=(
        *((name.share_hard >= SHARE).by_paper() for name in arms(*_SPANS)),
        *(
            (arm(f"{name}, trained").test_squared_error >= ALPHA**2 / 16).by_paper()
            for name in ("rbf", "ntk")
        ),
        (rank.singled_out <= 1 - 1e-9).by_paper().exactly(),
        (rank.over_bound <= 1.0).by_construction().exactly(),
    ),
    conditions=(
        Condition(
            "N ≤ C(d₁, k)/1000, at the greatest k",
            lambda scale: allowed(DIMENSION[scale], degrees_of(DIMENSION[scale])[-1]),
            lambda scale: math.comb(DIMENSION[scale], degrees_of(DIMENSION[scale])[-1]) / THRESHOLD,
            "≤",
        ),
        Condition("R ≥ 2N columns", lambda scale: 40, lambda scale: 40),
    ),
    control=Control(
        "as many examples as there are inputs, k = 2 for the trained kernels, and R = N columns",
        lambda scale: lower_bounds(scale, slipped=True),
    ),
    plots=(
        Plot(
            "Least risk in a kernel's span",
            "k",
            "least risk over targets and weights, in units of α²",
            (*(PlotLine(name, "least_risk", name) for name in KERNELS),),
            log_y=True,
            caption="With C(d, k)/1000 examples; the theorem says: above 1/16 for 99 % of the "
            "targets.",
        ),
    ),
    label_free_reason="the bounds are lower bounds: with shuffled labels the risk of a kernel is "
    "larger still",
    **notes("allenzhu2019/theorem2-3"),
)
