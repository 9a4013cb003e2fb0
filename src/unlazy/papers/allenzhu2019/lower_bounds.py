"""Theorems 2 and 3: minimum risk in the span of kernel functions or features, by enumeration."""

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
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.lab.trials import ExactComputation
from unlazy.learners.kernel import KernelRidge
from unlazy.probes.performance import Performance
from unlazy.tasks.hierarchy import HardInstance
from unlazy.theory.spans import ENOUGH, rank_leverages, span_risks
from unlazy.theory.walsh import points

#: The theorems allow C(d₁, k)/THRESHOLD examples or features; they hold for FRACTION of targets.
THRESHOLD, FRACTION = 1000, 0.99
ALPHA = 0.3
DIMENSION: dict[Scale, int] = {"smoke": 14, "laptop": 16, "paper": 18}


def allowed(d: int, k: int) -> int:
    """Return C(d, k)/1000, rounded down."""
    return math.comb(d, k) // THRESHOLD


def _columns(kernel: Kernel, x: Any, z: Any) -> Any:
    return kernel(x, z)


class SpanRisk(ExactComputation):
    """Minimum risk on H_i = x_i + α·χ_S over all weights, for every S of size k; the axis is k.

    The span is that of N kernel functions K(·, x⁽ⁿ⁾) at random points of the cube, or of N
    features. `share_hard`: fraction of sets S whose risk exceeds α²/16 for every i ∈ S.
    `least_risk`: minimum over S, ÷ α². `mean_captured`: mean over S of ‖P χ_S‖², P the projection
    onto the span. `functions`: N. `examples`: N, by default C(d, k)/1000.
    """

    what: Kernel | Features
    d: int = eqx.field(static=True)
    degrees: tuple[int, ...] = eqx.field(static=True)
    alpha: float = eqx.field(converter=float, default=ALPHA)
    examples: int | None = eqx.field(static=True, default=None)

    axis = "degrees"

    def _values(self, n: int, key: PRNGKeyArray) -> np.ndarray:
        """Return the N functions at all points of the cube, scaled to unit norm."""
        x = points(self.d) / math.sqrt(self.d)
        if isinstance(self.what, Features):
            return np.asarray(featured(self.what.draw(self.d, key=key), x), np.float64)
        rng = host_generator(key)
        # Without replacement: a repeated point adds no function to the span.
        centers = x[rng.choice(len(x), n, replace=False)]
        scale = self.what.input_scale(self.d)
        parts = [
            np.asarray(_columns(self.what, jnp.asarray(scale * part), jnp.asarray(scale * centers)))
            for part in np.array_split(x, 8)
        ]
        return np.concatenate(parts)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        measured: dict[str, list[float]] = {
            "share_hard": [],
            "least_risk": [],
            "mean_captured": [],
            "functions": [],
        }
        for index, k in enumerate(self.degrees):
            n = self.examples or allowed(self.d, k)
            risks, captured = span_risks(
                self._values(n, jax.random.fold_in(key, index)), k, self.alpha
            )
            measured["share_hard"].append(float(np.mean(risks > self.alpha**2 / 16)))
            measured["least_risk"].append(float(np.min(risks)) / self.alpha**2)
            measured["mean_captured"].append(float(np.mean(captured)))
            measured["functions"].append(float(n))
        return {name: np.array(values) for name, values in measured.items()}


class RankArgument(ExactComputation):
    """Lemma D.2: fraction of the R columns of M ∈ R^{N×R} that can be singled out.

    Matrices are random; the first consists of unit vectors, the worst case. `singled_out`: maximum
    fraction over all matrices. `over_bound`: `singled_out` ÷ (N/(0.9·R)).
    """

    n: int = eqx.field(static=True, default=20)
    columns: int = eqx.field(static=True, default=40)
    matrices: int = eqx.field(static=True, default=20)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        fractions = []
        for index in range(self.matrices):
            M = rng.normal(size=(self.n, self.columns))
            if index == 0:
                M = np.eye(self.n, self.columns)
            elif index % 2:
                M *= np.exp(3 * rng.normal(size=self.columns))  # a few columns are much larger
            fractions.append(float(np.mean(rank_leverages(M) >= ENOUGH)))
        fraction = max(fractions)
        return {"singled_out": fraction, "over_bound": fraction * ENOUGH * self.columns / self.n}


def degrees_of(d: int) -> tuple[int, ...]:
    """Return the three degrees k with the largest C(d, k)/1000."""
    best = sorted(
        (k for k in range(2, d // 2 + 1) if allowed(d, k) > 0), key=lambda k: -allowed(d, k)
    )[:3]
    return tuple(sorted(best))


def lower_bounds(scale: Scale, *, control: bool = False) -> dict[str, StudyArm]:
    """Return spans of all built-in kernels and two kinds of features, two trained kernels, and
    the rank argument.

    `control`: d = 8, with as many examples as inputs.
    """
    d = 8 if control else DIMENSION[scale]
    degrees = (4,) if control else degrees_of(d)
    examples = 1 << d if control else None
    largest = examples or max(allowed(d, k) for k in degrees)
    width = 1 << 10 if control else largest
    arms: dict[str, StudyArm] = {}
    for name, entry in KERNELS.items():
        if control and name in ("linear", "quadratic", "polynomial", "arc-cosine", "nngp", "ntk"):
            continue  # their spans are small, or contain no characters of odd degree
        arms[name] = SpanRisk(entry.value, d, degrees, examples=examples, precision=64)
    for kind in ("relu", "fourier"):
        features = RandomFeatures(kind, width=width, bandwidth=2.0)
        arms[f"{kind} features"] = SpanRisk(features, d, degrees[-1:], examples=width, precision=64)
    k = degrees[-1]
    family = HardInstance(d=d, k=2 if control else k, alpha=ALPHA)
    for name in ("rbf", "ntk"):
        learner = KernelRidge(KERNELS[name].value, (1e-4,))
        arms[f"{name}, trained"] = Arm(
            family,
            learner,
            2_000 if control else largest,
            (Performance(2_000 if scale == "smoke" else 10_000),),
        )
    return arms | {"rank": RankArgument(columns=20 if control else 40, precision=64)}


_SPANS = (*KERNELS, "relu features", "fourier features")

rank = arm("rank")
LOWER_BOUNDS = Claim(
    id="allenzhu2019/theorem2-3",
    where="Theorems 2 and 3 (Section 7), Lemma D.2",
    kind="bound",
    statement=(
        "Targets (7.1): k of d₁ coordinates, plus α times their product. With N ≤ C(d₁, k)/1000 "
        "examples, for at least 99 % of the targets, every linear combination of the N functions "
        "K(·, x⁽ⁿ⁾) of any kernel has a risk above α²/16. The same holds for every linear "
        "function of any D ≤ C(d₁, k)/1000 features. The proof uses a rank argument: of R ≥ 2N "
        "columns of a matrix with N rows, not all can be singled out (Lemma D.2)."
    ),
    study=lower_bounds,
    checks=(
        *((name.share_hard >= FRACTION).by_paper() for name in arms(*_SPANS)),
        *(
            (arm(f"{name}, trained").test_squared_error >= ALPHA**2 / 16).by_paper()
            for name in ("rbf", "ntk")
        ),
        (rank.singled_out <= 1 - 1e-9).by_paper().exactly(),
        (rank.over_bound <= 1.0).by_construction().exactly(),
    ),
    conditions=(
        Condition(
            "N ≤ C(d₁, k)/1000, at the largest k",
            lambda scale: allowed(DIMENSION[scale], degrees_of(DIMENSION[scale])[-1]),
            lambda scale: math.comb(DIMENSION[scale], degrees_of(DIMENSION[scale])[-1]) / THRESHOLD,
            "≤",
        ),
        Condition("R ≥ 2N columns", lambda scale: 40, lambda scale: 40),
    ),
    control=Control(
        "as many examples as inputs, k = 2 for the trained kernels, and R = N columns",
        lambda scale: lower_bounds(scale, control=True),
    ),
    plots=(
        Plot(
            "Minimum risk in the span of a kernel",
            "k",
            "minimum risk over targets and weights ÷ α²",
            (*(PlotLine(name, "least_risk", name) for name in KERNELS),),
            log_y=True,
            caption="With C(d, k)/1000 examples. Theorem: above 1/16 for 99 % of the targets.",
        ),
    ),
    label_free_reason="the bounds are lower bounds, and shuffled labels only increase the risk",
    **notes("allenzhu2019/theorem2-3"),
)
