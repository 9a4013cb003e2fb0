"""Claims of glasgow2023 on phase 1: growth of the signal component."""

from __future__ import annotations

import dataclasses
import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import ArmName, Check, Control, Scale, arms
from unlazy.papers.glasgow2023.computations import (
    PopulationGradientFormulas,
    ReducedPhases,
    StartingGradients,
)
from unlazy.papers.glasgow2023.deviations import GradientDeviations
from unlazy.papers.glasgow2023.growth import EndOfPhaseOne, SignalGrowth
from unlazy.papers.glasgow2023.probes import ErrorRate, Portrait
from unlazy.papers.glasgow2023.sizes import SIZES, Training, lemma_c1
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.shuffled_labels import ShuffledLabels

#: c and C of Lemma C.1, and the time ηt, beyond phase 1.
POWER, EXPONENT, TIME = 1.0, 2.0, 16.0


def _setting(scale: Scale) -> Training:
    d, width = {"smoke": (16, 32), "laptop": (64, 128), "paper": (128, 128)}[scale]
    return Training(d=d, width=width, radius=math.log(d) ** -EXPONENT)


def _phase1(run: Training, scale: Scale, *, shuffled: bool = False) -> StudyArm:
    end = EndOfPhaseOne(radius=run.radius, step=run.step, power=POWER)
    growth = SignalGrowth(radius=run.radius, step=run.step, ratio=run.batch / run.d)
    family = MultiIndex(d=run.d)
    record = tuple(range(run.length(TIME) + 1))
    return run.arm(
        record,
        Portrait(),
        ErrorRate(SIZES[scale].test),
        growth,
        end,
        family=ShuffledLabels(family) if shuffled else family,
    )


def _reduced(scale: Scale, thin: float = 1.0) -> StudyArm:
    return ReducedPhases(
        d=1e4 if scale == "smoke" else 1e6,
        exponent=EXPONENT,
        power=POWER,
        width=1000 if scale == "paper" else 400,
        thin=thin,
    )


def phase1(scale: Scale) -> dict[str, StudyArm]:
    """Return a training run, and the reduced dynamics in high dimension."""
    return {"SGD": _phase1(_setting(scale), scale), "d = 10⁶": _reduced(scale)}


def _control(scale: Scale) -> dict[str, StudyArm]:
    return {
        "SGD": _phase1(dataclasses.replace(_setting(scale), batch=8), scale, shuffled=True),
        "d = 10⁶": _reduced(scale, thin=3e9),
    }


def _at_end(name: ArmName) -> tuple[Check, ...]:
    return (
        (name.end_share >= 0.1).by_paper(),
        (name.end_rest <= 4.0).by_paper(),
        name.end_time.between(1.0, 4.0).refuting(),
    )


sgd, reduced = arms("SGD", "d = 10⁶")
PHASE1 = Claim(
    id="glasgow2023/phase1",
    where="Section 4.1, Lemmas 4.1 and C.1",
    kind="lemma",
    statement=(
        "For c large enough and C large enough in terms of c, with θ = 1/log^C(d), m ≥ d/θ², 1/θ "
        "≤ p ≤ d^C, η ≤ θ and initial scale θ: after some T₁ = Θ(log(d)/η) steps E‖a·w‖ ≤ 1, "
        "E‖w_perp + w_opp‖² ≤ 4θ², for each of the four clusters at least a tenth of the neurons "
        "has ‖w_sig‖ ≥ θ·log^c(d) toward it, E‖w‖² ≤ E a² + √η, and |a| ≤ ‖w‖ for all neurons. "
        "Until then the signal components of strong neurons grow exponentially, at the rate τ = "
        "1/√(2π) if |a| = ‖w‖."
    ),
    study=phase1,
    checks=(
        *_at_end(sgd),
        *_at_end(reduced),
        (sgd.end_gap <= 1.0).by_paper().refuting(),
        (reduced.end_gap <= 1.0).by_paper(),
        (sgd.end_excess <= 0.0).by_paper().refuting(),
        sgd.slope_ratio.between(0.9, 1.1),
    ),
    conditions=lemma_c1(_setting, POWER, EXPONENT),
    control=Control(
        "shuffled labels, and 8 examples per step; in the reduced dynamics, minibatches 3·10⁹ "
        "times smaller",
        _control,
    ),
    plots=(
        Plot(
            "Components of the neurons",
            "time ηt",
            "mean norm",
            (
                PlotLine("SGD", "signal", "signal w_sig", x="time"),
                PlotLine("SGD", "opposite", "opposite w_opp", x="time"),
                PlotLine("SGD", "rest", "perpendicular w_perp", x="time"),
            ),
            log_y=True,
            caption="Phase 1: the signal component grows from its initial size. Phase 2: it "
            "dominates, and the other components decrease.",
        ),
        Plot(
            "Balance of the margins",
            "time ηt",
            "margin y·f(μ)",
            (
                PlotLine("SGD", "margin_greatest", "maximum of the four", x="time"),
                PlotLine("SGD", "margin_least", "minimum of the four", x="time"),
                PlotLine(
                    "SGD",
                    "margin_least_reduced",
                    "minimum, reduced dynamics",
                    x="time",
                    theory=True,
                ),
            ),
            caption="The first learned cluster has the largest margin; phase 2 balances them.",
        ),
        Plot(
            "Growth of strong neurons",
            "time ηt",
            "median log growth of the signal",
            (
                PlotLine("SGD", "growth", "SGD", x="time"),
                PlotLine("SGD", "growth_reduced", "reduced dynamics", x="time", theory=True),
                PlotLine("SGD", "growth_theory", "log(1 + ητ)·t", x="time", theory=True),
            ),
            caption="The rate of phase 1 holds until w_sig and w_perp have similar norms.",
        ),
    ),
    **notes("glasgow2023/phase1"),
)


#: Enumerated dimensions, and dimensions of neurons at initialization.
ENUMERATED: dict[Scale, tuple[int, ...]] = {
    "smoke": (8, 10),
    "laptop": (8, 10, 12),
    "paper": (8, 10, 12, 14),
}
INITIAL: dict[Scale, tuple[int, ...]] = {"smoke": (64,), "laptop": (1024,), "paper": (1024, 4096)}


def gradients(scale: Scale) -> dict[str, StudyArm]:
    """Return the formulas versus enumeration, and neurons at initialization."""
    return {
        "formulas": PopulationGradientFormulas(ENUMERATED[scale], precision=64),
        "start": StartingGradients(INITIAL[scale], precision=64),
    }


start, formulas = arms("start", "formulas")
GRADIENTS = Claim(
    id="glasgow2023/gradients",
    where="Lemmas C.4, C.17 (A2, A3 at t = 0)",
    kind="lemma",
    statement=(
        "With s = √2‖w_sig‖, o = √2‖w_opp‖ and X = ⟨w_perp, ξ⟩: (B1) −⟨w_sig, ∇L₀⟩ = ¼|a|·s·P(|X| "
        "< s); (B2) −⟨w_opp, ∇L₀⟩ = −¼|a|·o·P(|X| < o); (B3) −⟨w_perp, ∇L₀⟩ = ±¼|a|·E[|X|; |X| "
        "between s and o], + if o > s; (B4) −w_i·∇_i L₀ = ¼|a||w_i|·(P(|X_i − o| ≤ |w_i|) − "
        "P(|X_i − s| ≤ |w_i|)) as printed, X_i without coordinate i. For controlled neurons |∇_a "
        "L₀| ≤ 4θ·min(√(θB_t), θ√ζ) and |∇_i L₀| ≤ ½·min(B_t, θζ) for each i. Near "
        "initialization ‖w_sig‖ grows at the rate τ = 1/√(2π)."
    ),
    study=gradients,
    checks=(
        *(
            formulas[measure][d] <= 1e-9
            for measure in ("signal_error", "opposite_error", "rest_error", "coordinate_error")
            for d in (8, 10)
        ),
        *((start[measure] <= 1.0).by_paper() for measure in ("second_ratio", "each_ratio")),
        start.rate_ratio.between(0.95, 1.05),
    ),
    conditions=(
        Condition(
            "neurons are controlled at t = 0 (C1, C2, C5), ζ = 1/log d",
            start.controlled,
            lambda s: 1.0,
            "≤",
        ),
    ),
    control=Control(
        "formulas with the opposite sign; neurons with 60 times the signal component",
        lambda s: {
            "formulas": PopulationGradientFormulas(ENUMERATED[s], turn=-1.0, precision=64),
            "start": StartingGradients(INITIAL[s], boost=60.0, precision=64),
        },
    ),
    corrections=("glasgow2023/lemma-c4",),
    **notes("glasgow2023/gradients"),
)


#: Initial radius θ, small enough that the bounds could fail.
RADIUS = 0.1


def _deviation_run(scale: Scale) -> Training:
    d, width = {"smoke": (16, 32), "laptop": (64, 128), "paper": (128, 256)}[scale]
    return Training(d=d, width=width, radius=RADIUS)


def _deviation(scale: Scale, sign: float) -> dict[str, StudyArm]:
    return {
        "SGD": _deviation_run(scale).arm(
            (0, 20, 40, 60, 80), GradientDeviations(SIZES[scale].points, radius=RADIUS, sign=sign)
        )
    }


DEVIATION = Claim(
    id="glasgow2023/deviation",
    label_free_reason="the bound holds for gradients with any labels",
    where="Lemmas C.2, C.3, C.17 (A4 at t = 0)",
    kind="lemma",
    statement=(
        "For any neuron |∇_a L₀ − ∇_a L_ρ| ≤ 2‖w‖·E‖a·w‖ and ‖∇_w L₀ − ∇_w L_ρ‖ ≤ 2|a|·E‖a·w‖; "
        "and if E‖a·w‖ ≤ d^{O(1)}, for each coordinate i |∇_i L_ρ − ∇_i L₀| ≤ |a|·(4E|a·w_i| + "
        "2·log(d)·E‖a·w‖·P(|⟨x, w⟩ without i| ≤ |w_i|) + d^{−ω(1)}). If all neurons are "
        "controlled, |∇_i L₀ − ∇_i L_ρ| ≤ ½·θ·B_t."
    ),
    study=lambda s: _deviation(s, 1.0),
    checks=(
        *(
            (sgd[measure][step] <= 1.0).by_paper()
            for measure in ("first_ratio", "second_ratio", "coordinate_ratio")
            for step in (0, 20, 40, 60, 80)
        ),
        (sgd.early_ratio[0] <= 1.0).by_paper(),
    ),
    control=Control(
        "gradients are compared with those of a linearized loss of the wrong sign",
        lambda s: _deviation(s, -1.0),
    ),
    plots=(
        Plot(
            "Deviation ÷ bound",
            "step",
            "maximum ratio over neurons",
            (
                PlotLine("SGD", "first_ratio", "first layer (C.2)"),
                PlotLine("SGD", "second_ratio", "second layer (C.2)"),
                PlotLine("SGD", "coordinate_ratio", "coordinates (C.3)"),
            ),
            log_y=True,
            caption="The bound is a ratio of 1.",
        ),
    ),
    **notes("glasgow2023/deviation"),
)
