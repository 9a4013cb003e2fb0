"""Rows on training: the start, Theorem 2 with its own schedule, schedules that do reach the parity,
and the lemmas of Section 4.2.

Reference: daniely2020, Sections 2 and 4.2, Theorem 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from unlazy.lab.arms import Arm, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Condition, Control, Scale, arm
from unlazy.learners.sources import PopulationGradients
from unlazy.papers.daniely2020.learner import ParitySchedule
from unlazy.papers.daniely2020.neuron_features import FeatureFraction
from unlazy.papers.daniely2020.probes import CountErrors, FullDecayStep, LayerDrift, Regret, Solved
from unlazy.papers.daniely2020.rows import ONE_RUN, K
from unlazy.tasks.equal_bits import CountedBits, EqualBits

#: δ of Theorem 2.
DELTA = 0.1
#: Bits at which k ≤ n^(1/10) for k = 7.
MANY = 300_000_001
#: Bits of schedules of our own.
BITS = 400


def places(steps: int, count: int = 40) -> tuple[int, ...]:
    """So many steps up to the last, in equal ratios, and the first."""
    return (0, *sorted({round(steps ** (index / count)) for index in range(count + 1)}))


def reduced(schedule: ParitySchedule, *, structured: float = 0.5) -> Arm:
    """Training on the numbers of ones, after the exact first step."""
    allowed = schedule.k**2 / math.sqrt(schedule.neurons / 2)
    family = CountedBits(d=schedule.n, k=schedule.k, structured=structured)
    return Arm(
        family, schedule.reduced(structured), 1, (CountErrors(), Solved(schedule.rate, allowed))
    )


def learner(scale: Scale, *, printed: bool = False) -> dict[str, StudyArm]:
    """All inputs of few bits, the first step."""
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
        "2q neurons σ(s) = min(max(s, 0), 6), in pairs: w_i uniform in {−1, 0, 1}^n, b_i = "
        "1/(8k), u_i uniform in [−n/k, n/k], and their opposites, so that the network is zero at "
        "the start. Gradient descent on the hinge loss over the distribution plus λ(‖u‖² + "
        "Σ‖w_i‖²): its first step, with η = 1 and λ = 1/2, leaves w_i = u_i·E[x f σ'] and u_i = "
        "E[f σ]."
    ),
    study=learner,
    checks=tuple((net[name] <= 1e-9).by_paper() for name in ("start", "w", "u")),
    corrections=("daniely2020/start",),
    control=Control(
        "pairs as they are printed, w_{q+i} = −w_i and b_{q+i} = −b_i",
        lambda scale: learner(scale, printed=True),
    ),
    **notes("daniely2020/learner"),
)

#: Pairs of neurons q and steps T of Theorem 2's own schedule.
WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (8, 16),
    "laptop": (64, 256),
    "paper": (64, 256, 1024, 4096),
}
STEPS: dict[Scale, int] = {"smoke": 50, "laptop": 4000, "paper": 20_000}


def bound(q: int, n: int, T: int, k: int = K) -> float:
    """k¹⁰/q + k⁸/√q + qk/√n + k²√q/T, with its constant taken as 1."""
    return k**10 / q + k**8 / math.sqrt(q) + q * k / math.sqrt(n) + k**2 * math.sqrt(q) / T


def theorem2(scale: Scale, *, structured: float = 0.5) -> dict[str, StudyArm]:
    """The theorem's schedule over the number of neurons."""
    T = STEPS[scale]
    rows = {
        q: ParitySchedule.theorem(n=MANY, k=K, q=q, T=T, record=places(T)) for q in WIDTHS[scale]
    }
    return {
        "theorem": Row(
            {q: reduced(schedule, structured=structured) for q, schedule in rows.items()},
            summaries=(_change,),
        )
    }


def _change(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """Change of the least error in points from the fewest to the most neurons; the bound."""
    return {"change": table["best"][-1] - table["best"][0]}


def _most(scale: Scale) -> int:
    return WIDTHS[scale][-1]


theorem = arm("theorem")
THEOREM2 = Claim(
    id="daniely2020/theorem2",
    where="Theorem 2",
    kind="figure",
    statement=(
        "With η₁ = 1, λ₁ = 1/2 and η_t = k²/(T√q), λ_t ≤ k/n after it, with probability 1 − δ "
        "there is a t ≤ T at which the error is at most O(k¹⁰/q + k⁸/√q + qk/√n + k²√q/T): it "
        "falls as q, n and T grow."
    ),
    study=theorem2,
    checks=(theorem.best <= 1.0, theorem.change <= -1.0),
    conditions=(
        Condition("k ≥ 7", lambda s: K, lambda s: 7),
        Condition("k ≤ n^(1/10), constant 1", lambda s: K, lambda s: MANY**0.1, "≤"),
        Condition(
            "q ≥ k⁷·log(k/δ), constant 1, δ = 0.1", _most, lambda s: K**7 * math.log(K / DELTA)
        ),
        Condition(
            "the bound is below 1, constant 1",
            lambda s: bound(_most(s), MANY, STEPS[s]),
            lambda s: 1.0,
            "≤",
        ),
    ),
    corrections=("daniely2020/start",),
    control=Control(
        "no input has equal bits but by chance", lambda scale: theorem2(scale, structured=0.0)
    ),
    plots=(
        Plot(
            title="Theorem 2 with its own step size",
            x="pairs of neurons q",
            y="least error (%)",
            series=(
                PlotLine("theorem", "best", "mixture"),
                PlotLine("theorem", "uniform_error", "uniform part, at the end"),
            ),
            log_x=True,
        ),
    ),
    **notes("daniely2020/theorem2"),
)

#: k: pairs, steps, pace η·q, where the second layer alone is trained after step 1.
SECOND_LAYER: dict[int, tuple[int, int, float]] = {
    3: (32, 1000, 1e5),
    5: (64, 4000, 1e5),
    7: (256, 150_000, 1e6),
}
#: k: pairs, steps, pace, where both layers are.
BOTH_LAYERS: dict[Scale, dict[int, tuple[int, int, float]]] = {
    "smoke": {3: (16, 100, 15.0), 5: (16, 100, 15.0), 7: (16, 100, 15.0)},
    "laptop": {3: (256, 2000, 15.0), 5: (256, 60_000, 15.0), 7: (256, 20_000, 15.0)},
    "paper": {3: (256, 2000, 15.0), 5: (256, 60_000, 15.0), 7: (256, 400_000, 15.0)},
}
#: Pairs over which the flow time that is needed is followed: steps and pace.
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


#: log₁₀ of a number of neurons that nobody will have.
NEVER = 30.0


def practical(scale: Scale, *, structured: float = 0.5) -> dict[str, StudyArm]:
    """Second layer alone, both layers, and both layers over the width."""

    def schedule(
        k: int, sizes: tuple[int, int, float], looks: int = 40, **others: Any
    ) -> ParitySchedule:
        q, T, pace = sizes
        T = 60 if scale == "smoke" else T
        return ParitySchedule.practical(
            n=BITS, k=k, q=q, T=T, pace=pace, record=places(T, looks), **others
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
        q: reduced(schedule(3, (q, *sizes), looks=160), structured=structured)
        for q, sizes in FLOW_WIDTHS[scale].items()
    }
    return arms | {"k = 3, over width": Row(widths, summaries=(_enough,))}


def _enough(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """log₁₀ of the q at which the flow time would be what the theorem allows, if it went on falling
    as between the last two widths; at most `NEVER`, which stands for a flow time that does not
    fall.
    """
    flow = np.log(np.maximum(table["flow"], 1e-300))
    slope = (flow[-1] - flow[-2]) / math.log(widths[-1] / widths[-2])
    return {
        "enough": min(math.log10(widths[-1]) - flow[-1] / slope / math.log(10), NEVER)
        if slope < 0
        else NEVER
    }


over_width = arm("k = 3, over width")
PRACTICAL = Claim(
    id="daniely2020/practical",
    where="Theorem 2, its conclusion, with schedules of our own",
    kind="figure",
    statement="After one step that forgets the start, gradient descent finds a network that "
    "labels all inputs rightly.",
    study=practical,
    checks=(
        *((arm(f"k = {k}, second layer").solved >= 1.0).for_share(0.6) for k in SECOND_LAYER),
        *((arm(f"k = {k}, both layers").solved >= 1.0).for_share(0.6) for k in (3, 5)),
        (arm("k = 7, both layers").solved >= 1.0).for_share(0.6).at("paper"),
        over_width.flow >= 2.0,
        over_width.enough >= 5.0,
    ),
    seeds={"smoke": 1, "laptop": 10, "paper": 10},
    corrections=("daniely2020/start",),
    control=Control(
        "no input has equal bits but by chance", lambda scale: practical(scale, structured=0.0)
    ),
    plots=(
        Plot(
            title="Flow time that is needed, over what Theorem 2 allows",
            x="pairs of neurons q",
            y="times k²/√q",
            series=(PlotLine("k = 3, over width", "flow", "both layers, k = 3"),),
            log_x=True,
            log_y=True,
        ),
    ),
    **notes("daniely2020/practical"),
)

#: Bits at which k ≤ ε^(1/4)·n^(1/8) for k = 7, ε = 1/(10k), is met last.
FEATURE_BITS: dict[Scale, tuple[int, ...]] = {
    "smoke": (401,),
    "laptop": (155_001, 28_300_000_001),
    "paper": (10_001, 155_001, 10_000_001, 28_300_000_001),
}


def lemma9(scale: Scale, tight: float = 0.0) -> dict[str, StudyArm]:
    """All neurons whose weights in A cancel."""
    return {"neurons": FeatureFraction(FEATURE_BITS[scale], K, tight, precision=64)}


neurons = arm("neurons")
LEMMA9 = Claim(
    id="daniely2020/lemma9",
    where="Lemma 9",
    kind="lemma",
    statement=(
        "For every r in {−k, −k + 2, …, k}, with probability at least ε/(112·k^2.5) over its "
        "start a neuron has after the first step |(|r|/b)·σ(⟨w, x⟩ + b) − ψ_r(x)| ≤ 2ε for all x, "
        "where ψ_r(x) = σ(−sign(r)·√n·Σ_{j∈A} x_j + |r|)."
    ),
    study=lemma9,
    checks=((neurons.wanted >= 1.0).by_paper(),),
    conditions=(
        Condition("k ≥ 7", lambda s: K, lambda s: 7),
        Condition(
            "k ≤ ε^(1/4)·n^(1/8), constant 1, ε = 1/(10k)",
            lambda s: K,
            lambda s: (1 / (10 * K)) ** 0.25 * FEATURE_BITS[s][-1] ** 0.125,
            "≤",
        ),
        Condition("n ≥ 9 log 7", lambda s: FEATURE_BITS[s][-1], lambda s: 17.6),
    ),
    corrections=("daniely2020/start", "daniely2020/lemma8-ceiling"),
    seeds=ONE_RUN,
    min_seeds=1,
    control=Control("within 2ε/√n instead of 2ε", lambda scale: lemma9(scale, 0.5)),
    **notes("daniely2020/lemma9"),
)


def regret(scale: Scale, towards: float = 1.0) -> dict[str, StudyArm]:
    """The second layer on the features that the first step left, every step recorded."""
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
        "Gradient descent with a fixed step η on convex functions f_t has for every θ*: mean "
        "f_t(θ_t) ≤ mean f_t(θ*) + ‖θ*‖²/(2ηT) + ‖θ₁‖·mean‖∇f_t(θ_t)‖ + η·mean‖∇f_t(θ_t)‖²."
    ),
    study=regret,
    checks=tuple(
        (arm(f"k = {k}, {name}").regret <= 1.0).by_paper()
        for k in (3, 7)
        for name in ("small steps", "large steps")
    ),
    control=Control(
        "the functions are those of the opposite labels, which the steps climb",
        lambda scale: regret(scale, -1.0),
    ),
    plots=(
        Plot(
            title="Regret over its bound",
            x="steps T",
            y="share of the bound",
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
    """The theorem's schedule; `faster`: steps are so many times as large as the bounds count."""
    T, n = {"smoke": (20, 401), "laptop": (2000, 155_001), "paper": (20_000, 155_001)}[scale]
    one = ParitySchedule.theorem(n=n, k=K, q=128, T=T, record=places(T))
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
        "ηt·k/√n and ‖w_i − w_i⁽¹⁾‖ ≤ 6η²t² + ηt·k/√n + 2ηtλ·n/k; and for every u* the loss of "
        "g_{u*} changes on every input by at most 2‖u*‖₂·√‖u*‖₀·(6η²t² + ηt·k/√n + ηtλ·n/k)."
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
        "steps are ten thousand times as large as the bounds count",
        lambda scale: drift(scale, 10_000.0),
    ),
    **notes("daniely2020/lemma13-14"),
)

TRAINING = (LEARNER, THEOREM2, PRACTICAL, LEMMA9, THEOREM11, LEMMA13_14)
