"""Theorems 2 and 3: minimum risk in the span of kernel functions or features, by enumeration."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
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
from unlazy.theory.spans import ENOUGH, Span, rank_leverages, sets_of_size
from unlazy.theory.walsh import points

#: The theorems allow C(d₁, k)/THRESHOLD examples or features; they hold for FRACTION of targets.
THRESHOLD, FRACTION = 1000, 0.99
ALPHA = 0.3
DIMENSION: dict[Scale, int] = {"smoke": 14, "laptop": 18, "paper": 19}
#: Values of the coordinates without signal (D₂), and their probabilities.
BACKGROUND = ((0.3, -1.2, 0.0, 0.5), (-0.8, 0.1, 0.9, -0.2))
PROBABILITIES = (0.7, 0.3)


def allowed(d: int, k: int) -> int:
    """Return C(d, k)/1000, rounded down."""
    return math.comb(d, k) // THRESHOLD


@eqx.filter_jit
def _evaluate(kernel: Kernel, x: Any, z: Any) -> Any:
    return kernel(x, z)


class SpanRisk(ExactComputation):
    """Minimum risk on H_i = x_i + α·χ_S over all weights, for every S of size k; the axis is k.

    The span is that of N kernel functions K(·, x⁽ⁿ⁾) at random points, or of N features. Each
    quantity is defined in quantities.csv. `examples`: N, by default C(d, k)/1000. `background`: the
    inputs have four more coordinates, with the distribution D₂.
    """

    what: Kernel | Features | None
    d: int = eqx.field(static=True)
    degrees: tuple[int, ...] = eqx.field(static=True)
    alpha: float = eqx.field(converter=float, default=ALPHA)
    examples: int | None = eqx.field(static=True, default=None)
    background: bool = eqx.field(static=True, default=False)

    axis = "degrees"

    def _span(self, n: int, k: int, key: PRNGKeyArray) -> Span:
        """Return the span of N functions on the cube."""
        x = points(self.d) / math.sqrt(self.d)
        if isinstance(self.what, Features):
            values = np.asarray(featured(self.what.draw(self.d, key=key), x), np.float64)
            return Span(values, None)
        assert self.what is not None
        rng = host_generator(key)
        # Without replacement: a repeated point adds no function to the span.
        centers = x[rng.choice(len(x), n, replace=n > len(x))]
        others: list[np.ndarray] = [np.zeros(0)]
        if self.background:
            others = [np.array(values) / math.sqrt(self.d) for values in BACKGROUND]
            drawn = rng.choice(len(others), n, p=PROBABILITIES)
            centers = np.concatenate([centers, np.stack([others[q] for q in drawn])], axis=1)
        scale = self.what.input_scale(self.d)
        values = np.empty((len(x), n, len(others)))
        step = max(1, len(x) // 32)
        for q, other in enumerate(others):
            for at in range(0, len(x), step):
                part = x[at : at + step]
                whole = np.concatenate([part, np.tile(other, (len(part), 1))], axis=1)
                values[at : at + step, :, q] = _evaluate(
                    self.what, jnp.asarray(scale * whole), jnp.asarray(scale * centers)
                )
        return Span(values, np.array(PROBABILITIES) if self.background else None)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = []
        numbers = {k: self.examples or allowed(self.d, k) for k in self.degrees}
        span = None
        for k, n in numbers.items():
            if span is None or self.what is None:
                span = self._span(max(numbers.values()), k, key)
            risks, captured = span.risks(k, self.alpha, n)
            rows.append(
                {
                    "share_hard": float(np.mean(risks > self.alpha**2 / 16)),
                    "least_risk": float(np.min(risks)) / self.alpha**2,
                    "middle_risk": float(np.median(risks)) / self.alpha**2,
                    "mean_captured": float(np.mean(captured)),
                    "functions": float(n),
                }
            )
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}


class ChosenCharacters(SpanRisk):
    """The kernel Σ_T χ_T(x)·χ_T(z) of d single coordinates and N − d sets of size k.

    With N examples its functions span these characters, so that it learns N − d targets exactly.
    """

    def _span(self, n: int, k: int, key: PRNGKeyArray) -> Span:
        rng = host_generator(key)
        z = points(self.d)
        known = sets_of_size(self.d, k)
        sets = rng.choice(known, min(max(n - self.d, 1), len(known)), replace=False)
        bits = (sets[:, None] >> np.arange(self.d - 1, -1, -1)) & 1 == 1
        chosen = [np.prod(z[:, each], axis=1) for each in bits]
        characters = np.stack([*z.T, *chosen], axis=1)[:, -n:]
        centers = rng.choice(len(z), n, replace=False)
        return Span(characters @ characters[centers].T, None)


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
    """Return spans of kernels and features, two trained kernels, and the rank argument.

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
    for name in ("rbf",) if control else ("rbf", "ntk"):
        arms[f"{name}, d₁ < d"] = SpanRisk(
            KERNELS[name].value,
            6 if control else d,
            (3,) if control else degrees[-1:],
            examples=1 << 10 if control else None,
            background=True,
            precision=64,
        )
    arms["chosen characters"] = ChosenCharacters(
        None, d, degrees[-1:], examples=examples, precision=64
    )
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


_SPANS = (
    *KERNELS,
    "rbf, d₁ < d",
    "ntk, d₁ < d",
    "chosen characters",
    "relu features",
    "fourier features",
)

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
        (rank.singled_out <= 1 - 1e-9).by_paper().exactly().at("laptop", "paper"),
        (rank.over_bound <= 1.0).by_construction().exactly(),
    ),
    conditions=(
        Condition(
            "N ≤ C(d₁, k)/1000, at the largest k",
            arm("rbf").functions,
            lambda scale: math.comb(DIMENSION[scale], degrees_of(DIMENSION[scale])[-1]) / THRESHOLD,
            "≤",
        ),
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
            (
                *(PlotLine(name, "least_risk", name) for name in KERNELS),
                PlotLine("linear", "middle_risk", "linear, median over targets"),
            ),
            log_y=True,
            caption="With C(d, k)/1000 examples. Theorem: above 1/16 for 99 % of the targets.",
        ),
    ),
    label_free_reason="the bounds are lower bounds, and shuffled labels only increase the risk",
    **notes("allenzhu2019/theorem2-3"),
)
