"""Claims on training: initialization, Theorem 2 with its own and with practical schedules, and the
lemmas of Section 4.2.

Reference: daniely2020, Sections 2 and 4.2, Theorem 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from unlazy.lab.arms import Arm, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.learners.sources import PopulationGradients
from unlazy.papers.daniely2020.learner import ParitySchedule
from unlazy.papers.daniely2020.probes import CountErrors, FullDecayStep, LayerDrift, Regret, Solved
from unlazy.papers.daniely2020.rows import K
from unlazy.tasks.equal_bits import CountedBits, EqualBits

#: δ of Theorem 2.
DELTA = 0.1
#: Number n of bits with k ≤ n^(1/10) for k = 7.
THEOREM2_BITS = 300_000_001
#: Number n of bits of our own schedules.
BITS = 400


def geometric_steps(steps: int, count: int = 40) -> tuple[int, ...]:
    """Return 0 and about `count` geometrically spaced steps up to `steps`."""
    return (0, *sorted({round(steps ** (index / count)) for index in range(count + 1)}))


def reduced(schedule: ParitySchedule, *, structured: float = 0.5) -> Arm:
    """Return training on the numbers of ones, after the exact first step."""
    allowed = schedule.k**2 / math.sqrt(schedule.neurons / 2)
    family = CountedBits(d=schedule.n, k=schedule.k, structured=structured)
    return Arm(
        family, schedule.reduced(structured), 1, (CountErrors(), Solved(schedule.rate, allowed))
    )


def learner(scale: Scale, *, printed: bool = False) -> dict[str, StudyArm]:
    """Return the first step on all inputs of few bits."""
    n, k = {"smoke": (7, 3), "laptop": (11, 5), "paper": (13, 7)}[scale]
    schedule = ParitySchedule.theorem(n=n, k=k, q=32, T=1, printed=printed, record=(0, 1))
    return {
        "network": Arm(
            EqualBits(d=n, k=k), schedule.network(PopulationGradients()), 1, (FullDecayStep(),)
        )
    }


net = arm("network")
LEARNER = Claim(
    id="daniely2020/learner",
    where="Section 2",
    kind="learner",
    statement=(
        "2q neurons with σ(s) = min(max(s, 0), 6) are initialized in pairs: w_i uniform in {−1, 0, "
        "1}^n, b_i = 1/(8k), u_i uniform in [−n/k, n/k], and their opposites, so the initial "
        "network is zero. Training is gradient descent on the population hinge loss plus λ(‖u‖² + "
        "Σ‖w_i‖²). The first step, with η = 1 and λ = 1/2, gives w_i = u_i·E[x f σ'] and u_i = E[f "
        "σ]."
    ),
    study=learner,
    checks=tuple((net[name] <= 1e-9).by_paper() for name in ("start", "w", "u")),
    corrections=("daniely2020/start",),
    control=Control(
        "pairs as printed, w_{q+i} = −w_i and b_{q+i} = −b_i",
        lambda scale: learner(scale, printed=True),
    ),
    **notes("daniely2020/learner"),
)

#: Pairs of neurons q and steps T for the schedule of Theorem 2.
WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (8, 16),
    "laptop": (64, 256),
    "paper": (64, 256, 1024, 4096),
}
STEPS: dict[Scale, int] = {"smoke": 50, "laptop": 4000, "paper": 20_000}


def bound(q: int, n: int, T: int, k: int = K) -> float:
    """Return k¹⁰/q + k⁸/√q + qk/√n + k²√q/T, the bound of Theorem 2 for the constant 1."""
    return k**10 / q + k**8 / math.sqrt(q) + q * k / math.sqrt(n) + k**2 * math.sqrt(q) / T


def theorem2(scale: Scale, *, structured: float = 0.5) -> dict[str, StudyArm]:
    """Return the theorem's schedule over the number of neurons."""
    T = STEPS[scale]
    rows = {
        q: ParitySchedule.theorem(n=THEOREM2_BITS, k=K, q=q, T=T, record=geometric_steps(T))
        for q in WIDTHS[scale]
    }
    return {
        "theorem": Row(
            {q: reduced(schedule, structured=structured) for q, schedule in rows.items()},
            summaries=(_change,),
        )
    }


def _change(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """Return the minimum error at the largest width minus that at the smallest, in points."""
    return {"change": table["best"][-1] - table["best"][0]}


def _max_width(scale: Scale) -> int:
    return WIDTHS[scale][-1]


theorem = arm("theorem")
THEOREM2 = Claim(
    id="daniely2020/theorem2",
    where="Theorem 2",
    kind="figure",
    statement=(
        "With η₁ = 1, λ₁ = 1/2 in the first step and η_t = k²/(T√q), λ_t ≤ k/n afterwards, with "
        "probability 1 − δ there is a t ≤ T at which the error is at most O(k¹⁰/q + k⁸/√q + qk/√n "
        "+ k²√q/T). The error decreases as q, n and T grow."
    ),
    study=theorem2,
    checks=(theorem.best <= 1.0, theorem.change <= -1.0),
    conditions=(
        Condition("k ≥ 7", lambda s: K, lambda s: 7),
        Condition("k ≤ C₁·n^(1/10)", lambda s: K, lambda s: THEOREM2_BITS**0.1, "≤", constant="C₁"),
        Condition(
            "q ≥ C₂·k⁷·log(k/δ), δ = 0.1",
            _max_width,
            lambda s: K**7 * math.log(K / DELTA),
            constant="C₂",
        ),
        Condition(
            "1 ≥ C₃·(k¹⁰/q + k⁸/√q + qk/√n + k²√q/T), so that the bound says anything",
            lambda s: 1.0,
            lambda s: bound(_max_width(s), THEOREM2_BITS, STEPS[s]),
            constant="C₃",
        ),
    ),
    # Five equal values cannot fail one of two checks.
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    control=Control("the all-equal part is absent", lambda scale: theorem2(scale, structured=0.0)),
    plots=(
        Plot(
            title="Theorem 2 with its own step size",
            x="pairs of neurons q",
            y="error (%)",
            series=(
                PlotLine("theorem", "best", "mixture, minimum over steps"),
                PlotLine("theorem", "uniform_error", "uniform part, last step"),
            ),
            log_x=True,
        ),
    ),
    **notes("daniely2020/theorem2"),
)

#: k: pairs, steps and pace η·q, if only the second layer is trained after step 1.
SECOND_LAYER: dict[int, tuple[int, int, float]] = {
    3: (32, 1000, 1e5),
    5: (64, 4000, 1e5),
    7: (256, 150_000, 1e6),
}
#: k: pairs, steps and pace, if both layers are trained.
BOTH_LAYERS: dict[Scale, dict[int, tuple[int, int, float]]] = {
    "smoke": {3: (16, 100, 15.0), 5: (16, 100, 15.0), 7: (16, 100, 15.0)},
    "laptop": {3: (256, 2000, 15.0), 5: (256, 60_000, 15.0), 7: (256, 20_000, 15.0)},
    "paper": {3: (256, 2000, 15.0), 5: (256, 60_000, 15.0), 7: (256, 400_000, 15.0)},
}
#: Pairs q at which the required flow time is measured: steps and pace.
FLOW_WIDTHS: dict[Scale, dict[int, tuple[int, float]]] = {
    "smoke": {4: (20, 15.0), 8: (20, 15.0)},
    "laptop": {64: (1000, 15.0), 1024: (1000, 60.0), 16_384: (500, 240.0)},
    "paper": {
        64: (1000, 15.0),
        256: (1000, 15.0),
        1024: (1000, 60.0),
        4096: (1000, 60.0),
        16_384: (500, 240.0),
        65_536: (500, 240.0),
    },
}


#: Upper limit of `enough`, a log₁₀ of a number of pairs.
MAX_ENOUGH = 30.0


def practical(scale: Scale, *, structured: float = 0.5) -> dict[str, StudyArm]:
    """Return training of the second layer, of both layers, and of both layers over the width."""

    def schedule(
        k: int, sizes: tuple[int, int, float], count: int = 40, **others: Any
    ) -> ParitySchedule:
        q, T, pace = sizes
        T = 60 if scale == "smoke" else T
        return ParitySchedule.practical(
            n=BITS, k=k, q=q, T=T, pace=pace, record=geometric_steps(T, count), **others
        )

    second = {
        f"k = {k}, second layer": schedule(k, sizes, layers="second")
        for k, sizes in SECOND_LAYER.items()
    }
    both = {f"k = {k}, both layers": schedule(k, sizes) for k, sizes in BOTH_LAYERS[scale].items()}
    arms: dict[str, StudyArm] = {
        name: reduced(one, structured=structured) for name, one in (second | both).items()
    }
    widths = {
        q: reduced(schedule(3, (q, *sizes), count=160), structured=structured)
        for q, sizes in FLOW_WIDTHS[scale].items()
    }
    return arms | {"k = 3, over width": Row(widths, summaries=(_enough,))}


def _enough(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """Return log₁₀ of the q at which the flow time would equal that of the theorem, extrapolated
    from the last two widths; at most `MAX_ENOUGH`, also if the flow time does not decrease.
    """
    flow = np.log(np.maximum(table["flow"], 1e-300))
    slope = (flow[-1] - flow[-2]) / math.log(widths[-1] / widths[-2])
    return {
        "enough": min(math.log10(widths[-1]) - flow[-1] / slope / math.log(10), MAX_ENOUGH)
        if slope < 0
        else MAX_ENOUGH
    }


over_width = arm("k = 3, over width")
PRACTICAL = Claim(
    id="daniely2020/practical",
    where="none; the conclusion of Theorem 2 with schedules of our own",
    kind="figure",
    source="ours",
    statement="After one step with full decay, gradient descent finds a network that labels all "
    "inputs correctly.",
    study=practical,
    checks=(
        *((arm(f"k = {k}, second layer").solved >= 1.0).for_share(0.6) for k in SECOND_LAYER),
        *((arm(f"k = {k}, both layers").solved >= 1.0).for_share(0.6) for k in (3, 5)),
        (arm("k = 7, both layers").solved >= 1.0).for_share(0.6).at("paper"),
        (over_width.flow >= 2.0).refuting(),
        (over_width.enough >= 5.0).refuting(),
    ),
    seeds={"smoke": 1, "laptop": 10, "paper": 10},
    control=Control("the all-equal part is absent", lambda scale: practical(scale, structured=0.0)),
    plots=(
        Plot(
            title="Required flow time divided by that of Theorem 2",
            x="pairs of neurons q",
            y="η·t ÷ (k²/√q)",
            series=(PlotLine("k = 3, over width", "flow", "both layers, k = 3"),),
            log_x=True,
            log_y=True,
        ),
    ),
    **notes("daniely2020/practical"),
)


def regret(scale: Scale, towards: float = 1.0) -> dict[str, StudyArm]:
    """Return training of the second layer on the features after step 1, every step recorded."""
    arms: dict[str, StudyArm] = {}
    for k in (3, 7):
        T = 20 if scale == "smoke" else 400
        for name, pace in (("small steps", 10.0), ("large steps", 100.0)):
            one = ParitySchedule.practical(
                n=BITS, k=k, q=64, T=T, pace=pace, layers="second", record=tuple(range(T))
            )
            arms[f"k = {k}, {name}"] = Arm(
                CountedBits(d=BITS, k=k), one.reduced(), 1, (Regret(one.rate, 0.0, towards),)
            )
    return arms


THEOREM11 = Claim(
    id="daniely2020/theorem11",
    where="Theorem 11",
    kind="lemma",
    statement=(
        "Gradient descent with fixed step size η on convex functions f_t satisfies for every θ*: "
        "mean f_t(θ_t) ≤ mean f_t(θ*) + ‖θ*‖²/(2ηT) + ‖θ₁‖·mean‖∇f_t(θ_t)‖ + η·mean‖∇f_t(θ_t)‖²."
    ),
    study=regret,
    checks=tuple(
        (arm(f"k = {k}, {name}").regret <= 1.0).by_paper()
        for k in (3, 7)
        for name in ("small steps", "large steps")
    ),
    control=Control(
        "the functions have the opposite labels, so the steps increase them",
        lambda scale: regret(scale, -1.0),
    ),
    plots=(
        Plot(
            title="Regret divided by its bound",
            x="steps T",
            y="regret ÷ bound",
            series=tuple(
                PlotLine(f"k = {k}, {name}", "regret", f"k = {k}, {name}")
                for k in (3, 7)
                for name in ("small steps", "large steps")
            ),
            log_x=True,
        ),
    ),
    **notes("daniely2020/theorem11"),
)


def drift(scale: Scale, faster: float = 1.0) -> dict[str, StudyArm]:
    """Return the theorem's schedule; the bounds assume steps smaller by the factor `faster`."""
    T, n = {"smoke": (20, 401), "laptop": (2000, 155_001), "paper": (20_000, 155_001)}[scale]
    one = ParitySchedule.theorem(n=n, k=K, q=128, T=T, record=geometric_steps(T))
    arm = Arm(
        CountedBits(d=n, k=K), one.reduced(), 1, (LayerDrift(n, K, one.rate / faster, one.penalty),)
    )
    return {"theorem": arm}


LEMMA13_14 = Claim(
    id="daniely2020/lemma13-14",
    where="Lemmas 13 and 14",
    kind="lemma",
    statement=(
        "With a fixed η and λ ≤ 1/2 after step 1: |u_i| ≤ 6ηt + k/√n, |b_i − b_i⁽¹⁾| ≤ 6η²t² + "
        "ηt·k/√n and ‖w_i − w_i⁽¹⁾‖ ≤ 6η²t² + ηt·k/√n + 2ηtλ·n/k. For every u*, the loss of g_{u*} "
        "changes on every input by at most 2‖u*‖₂·√‖u*‖₀·(6η²t² + ηt·k/√n + ηtλ·n/k)."
    ),
    study=drift,
    checks=tuple((theorem[name] <= 1.0).by_paper() for name in ("u", "w", "b", "loss")),
    conditions=(
        Condition(
            "η ≤ 1/2",
            lambda s: K**2 / ({"smoke": 20, "laptop": 2000, "paper": 20_000}[s] * math.sqrt(128)),
            lambda s: 0.5,
            "≤",
        ),
    ),
    control=Control(
        "steps are ten thousand times as large as assumed in the bounds",
        lambda scale: drift(scale, 10_000.0),
    ),
    **notes("daniely2020/lemma13-14"),
)

TRAINING = (LEARNER, THEOREM2, PRACTICAL, THEOREM11, LEMMA13_14)
