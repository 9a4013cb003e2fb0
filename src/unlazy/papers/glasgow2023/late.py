"""Claims of glasgow2023 on phase 2: growth and balance of the margins."""

from __future__ import annotations

import dataclasses
import math

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arms
from unlazy.papers.glasgow2023.clean import BaseCase, CleanNeurons
from unlazy.papers.glasgow2023.constructed import HeavyStep
from unlazy.papers.glasgow2023.growth import GrowthComparison, MarginGrowth
from unlazy.papers.glasgow2023.probes import ErrorRate, Portrait, SignalHeavy
from unlazy.papers.glasgow2023.sizes import SIZES, Training, training
from unlazy.tasks.base import Family
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.shuffled_labels import ShuffledLabels

#: Times ηt between which phase 2 is recorded, and the steps after the first at which it is checked.
FROM, UNTIL, CHECKED = 9.5, 20.5, (0, 15, 40)


def _recorded(run: Training, family: Family | None = None) -> StudyArm:
    steps = tuple(range(run.length(FROM), run.length(UNTIL) + 1))
    return run.arm(
        steps, Portrait(), SignalHeavy(), MarginGrowth(step=run.step, looks=CHECKED), family=family
    )


def phase2(scale: Scale) -> dict[str, StudyArm]:
    """Return one run, recorded at every step, under three names.

    Each item of the lemma has its own negative control.
    """
    run = _recorded(training(scale))
    return {"least margin": run, "greatest margin": run, "hypothesis": run}


def _wrong_phase2(scale: Scale) -> dict[str, StudyArm]:
    run = training(scale)
    return {
        "least margin": _recorded(run, ShuffledLabels(MultiIndex(d=run.d))),
        "greatest margin": _recorded(dataclasses.replace(run, second=3.0)),
        "hypothesis": _frozen_early(run),
    }


def _frozen_early(run: Training) -> StudyArm:
    """Return a run with a frozen second layer of norm 1, recorded from ηt = 4.1 on."""
    run = dataclasses.replace(run, second=0.0, norm=1.0)
    steps = tuple(range(run.length(4.1), run.length(UNTIL) + 1))
    return run.arm(steps, Portrait(), SignalHeavy(), MarginGrowth(step=run.step, looks=CHECKED))


hypothesis, minimum, maximum = arms("hypothesis", "least margin", "greatest margin")
PHASE2 = Claim(
    id="glasgow2023/phase2",
    where="Definition 4.2, Lemma 4.4",
    kind="lemma",
    statement=(
        "If a network is (ζ, H)-signal-heavy, then after one minibatch step with η ≤ ζ³, with "
        "probability 1 − d^{−ω(1)}: it is (ζ(1 + 10ηζH), H)-signal-heavy; γ̃_min grows at least "
        "by the factor 1 + 2ητ(1 − o(1))·g_max, and γ̃_max at most by 1 + 2ητ(1 + o(1))·g_min, τ "
        "= √2/4. Signal-heavy means: ζ ≤ e^{−10H}, H ≥ 1, a set S with e^{6H}‖w_perp‖ + ‖w_opp‖ ≤ "
        "ζ‖w_sig‖, E[1(w ∉ S)‖w‖²] ≤ ζγ̃_min, E‖w‖² ≤ E a² + ζH ≤ 2H, |a| ≤ ‖w‖."
    ),
    study=phase2,
    checks=(
        *(minimum[f"least_ratio_{step}"] >= 0.85 for step in CHECKED),
        *(maximum[f"greatest_ratio_{step}"] <= 1.15 for step in CHECKED),
        hypothesis.zeta_rise_most <= 1.0,
        hypothesis.log10_zeta_plain <= -1.0,
    ),
    conditions=(
        Condition(
            "ζ·e^{10H} ≤ 1, minimum over the run",
            hypothesis.zeta_met_least,
            lambda s: 1.0,
            "≤",
        ),
        Condition(
            "η ≤ ζ³ ≤ e^{−30H} with H ≥ 1", lambda s: training(s).step, lambda s: math.exp(-30), "≤"
        ),
    ),
    control=Control(
        "shuffled labels (minimum margin); a second layer with three times the learning rate "
        "(maximum margin); a frozen second layer of norm 1 (hypothesis)",
        _wrong_phase2,
    ),
    plots=(
        Plot(
            "Growth of the margins ÷ stated growth",
            "step",
            "ratio",
            (
                PlotLine("least margin", "least_ratio", "minimum margin"),
                PlotLine("greatest margin", "greatest_ratio", "maximum margin"),
            ),
            caption="Lemma 4.4: at least 1 − o(1) for the minimum margin, at most 1 + o(1) for "
            "the maximum margin.",
        ),
    ),
    **notes("glasgow2023/phase2"),
)


def _cube(scale: Scale) -> tuple[int, int]:
    return {"smoke": (8, 64), "laptop": (10, 96), "paper": (14, 192)}[scale]


def phase2_step(scale: Scale) -> dict[str, StudyArm]:
    """Return one exact step from networks that satisfy the definition."""
    step = HeavyStep(*_cube(scale), precision=64)
    return {
        "margins": step,
        "neurons of S": step,
        "H = 2": HeavyStep(*_cube(scale), H=2.0, precision=64),
    }


def _wrong_step(scale: Scale) -> dict[str, StudyArm]:
    false = {"frozen": True, "linear": True, "precision": 64}
    return {
        "margins": HeavyStep(*_cube(scale), **false),  # type: ignore[arg-type]
        "neurons of S": HeavyStep(*_cube(scale), loose=0.3, precision=64),
        "H = 2": HeavyStep(*_cube(scale), H=2.0, **false),  # type: ignore[arg-type]
    }


strong, margins, larger = arms("neurons of S", "margins", "H = 2")
HEAVY = (
    Condition("ζ·e^{10H}, ζ the minimum of the network", margins.zeta_met, lambda s: 1 + 1e-9, "≤"),
    Condition("(E‖w‖² − E a²)/(ζH)", margins.gap, lambda s: 1.0, "≤"),
    Condition("(E a² + ζH)/(2H)", margins.norm, lambda s: 1.0, "≤"),
)
PHASE2_STEP = Claim(
    id="glasgow2023/phase2-step",
    where="Lemmas 4.4 and D.3 (on the population loss), D.12, D.13, Claim D.15",
    kind="lemma",
    statement=(
        "A (ζ, H)-signal-heavy network is (ζ(1 + 10ηζH), H)-signal-heavy after a step with η ≤ "
        "ζ³, with the same S, also E‖w'‖² ≤ E a'² + ζ'H ≤ 2H; γ̃_min' ≥ (1 + 2ητ(1 − "
        "o(1))·g_max)·γ̃_min and γ̃_max' ≤ (1 + 2ητ(1 + o(1))·g_min)·γ̃_max, τ = √2/4; |a|‖w_sig‖ "
        "of a neuron of S_μ grows at least by the factor 1 + 2ητ(1 − o(1))·g_μ."
    ),
    study=phase2_step,
    checks=(
        *(arm.least_ratio >= 0.999 for arm in (margins, larger)),
        *(arm.greatest_ratio <= 1.001 for arm in (margins, larger)),
        margins.neuron_ratio >= 0.999,
        *((arm.mass_rate <= 1.0).by_paper() for arm in (margins, larger)),
        (strong.shape_rate <= 1.0).by_paper(),
        (margins.gap_rate <= 1.0).by_paper(),
        (margins.norm_after <= 1.0).by_paper().refuting(),
    ),
    conditions=HEAVY,
    control=Control(
        "a frozen second layer and a linear loss; non-signal components of 0.3 times the signal",
        _wrong_step,
    ),
    **notes("glasgow2023/phase2-step"),
)


def clean(scale: Scale) -> dict[str, StudyArm]:
    """Return clean gradients of neurons and constructed networks, and the base case."""
    count = 50 if scale == "smoke" else 200
    return {
        "neurons": CleanNeurons(
            count if scale != "paper" else 2000, 8 if scale != "paper" else 10, precision=64
        ),
        "network": HeavyStep(*_cube(scale), precision=64),
        "scattered": HeavyStep(*_cube(scale), scattered=True, precision=64),
        "base case": BaseCase(1e6, 20.0, precision=64),
    }


def _not_clean(scale: Scale) -> dict[str, StudyArm]:
    wrong = HeavyStep(*_cube(scale), gain=30.0, loose=0.3, precision=64)
    return {
        "neurons": CleanNeurons(200, 8, flip=-1.0, gain=1.5, short=2.0, precision=64),
        "network": wrong,
        "scattered": wrong,
        "base case": BaseCase(1e6, 4.0, precision=64),
    }


neurons, base_case, net, scattered = arms("neurons", "base case", "network", "scattered")
CLEAN = Claim(
    id="glasgow2023/clean-gradients",
    where="Lemmas D.4 (mass outside of S), D.5, D.7, D.10, D.11, D.14, Claims D.6, D.9, Corollary "
    "D.8",
    kind="lemma",
    statement=(
        "Clean gradients use the loss derivative at the cluster center. In a signal-heavy network "
        "with H_ρ = E‖a·w‖, gradients differ from them by at most 4|a|ζH_ρ and 4‖w‖ζH_ρ (D.5). "
        "For w in S, "
        "−⟨μ, ∇ᶜ_w L⟩ = |a|τg_μ(1 ± o(1)) and −y∇ᶜ_a L = ‖w_sig‖τg_μ(1 ± o(1)) (D.6); with X = "
        "P(|⟨w_perp, ξ⟩| ≥ √2‖w_opp‖), ⟨w_perp, ∇ᶜ⟩/|a| ≥ g_min·X·‖w_perp‖/(4√2) − ζ‖w_perp‖ and "
        "⟨w_opp, ∇ᶜ⟩/|a| ≥ √2·g_min‖w_opp‖/8 − √2·g_max·X‖w_opp‖/4 (D.7), so ⟨w_opp, ∇ᶜ⟩ + "
        "e^{6H}⟨w_perp, ∇ᶜ⟩ is at least of the order g_min·e^{−6H}(‖w_opp‖ + e^{6H}‖w_perp‖)|a| "
        "(D.8); X ≥ ½ if ‖w_perp‖ ≥ 10‖w_opp‖ (D.9). For any neuron |∇ᶜ_a L| ≤ τ·g_max·‖w‖ "
        "(D.10), ‖w‖² grows by at most the factor 1 + 2η(1 + 2ζH)τg_max (D.11); |γ̃' − γ̃| ≤ 8ηH "
        "and |γ − γ̃| ≤ 2ζH (D.14). After phase 1, E[1(w ∉ S)‖w‖²] ≤ ζγ̃_min with ζ = log^{−c/2} "
        "d (D.4)."
    ),
    study=clean,
    checks=(
        neurons.signal_error <= 4.0,
        neurons.second_error <= 4.0,
        (neurons.rest_ratio >= 1 - 1e-6).by_paper(),
        (neurons.opposite_slack >= 0.0).by_paper(),
        neurons.both_ratio >= 1.0,
        (neurons.beyond >= 0.5).by_paper(),
        (neurons.second_bound <= 1 + 1e-9).by_paper(),
        *((scattered[measure] <= 1.0).by_paper() for measure in ("clean_first", "clean_second")),
        *(
            (net[measure] <= 1.0).by_paper()
            for measure in ("norm_rate", "margin_step", "margin_gap")
        ),
        (base_case.mass <= 1.0).by_paper().exactly(),
    ),
    conditions=(
        Condition("ζ·e^{10H}, ζ the minimum of the network", net.zeta_met, lambda s: 1 + 1e-9, "≤"),
        Condition("H ≥ 1 (base case, d = 10⁶, c = 20)", base_case.H, lambda s: 1.0),
    ),
    control=Control(
        "negated labels and loss derivatives 1.5 times too large; networks that are not "
        "signal-heavy, with 30 times the learning rate; c = 4 in the base case",
        _not_clean,
    ),
    **notes("glasgow2023/clean-gradients"),
)


def _frozen(scale: Scale, *, second: float) -> StudyArm:
    size = SIZES[scale]
    base = Training(d=size.d, width=size.width)
    norm = None if second else 1.0
    run = Training(d=size.d, width=size.width, second=second, norm=norm)
    # S is determined once neurons are heavy, which is earlier for a second layer of norm 1.
    since = base.length(10.3 if second else 4.1)
    probes = (
        Portrait(),
        SignalHeavy(),
        ErrorRate(size.test),
        GrowthComparison(since, step=run.step),
    )
    return run.arm(tuple(range(base.length(20.0) + 1)), *probes)


def frozen(scale: Scale) -> dict[str, StudyArm]:
    """Return training of both layers, and of the first layer only."""
    return {
        "both layers": _frozen(scale, second=1.0),
        "first layer alone": _frozen(scale, second=0.0),
    }


first_layer, both_layers = arms("first layer alone", "both layers")
FROZEN = Claim(
    id="glasgow2023/frozen",
    where="Remark 4.3",
    kind="figure",
    statement=(
        "If the second layer is not trained (and all its weights have norm 1), the neurons in S "
        "grow linearly at rate τ|ℓ'(μ)|, and those outside at up to the same linear rate, so they "
        "might eventually attain non-negligible mass. If both layers are trained, neurons grow "
        "exponentially, which maintains the ratio of the masses inside and outside of S."
    ),
    study=frozen,
    checks=(
        first_layer.linear_error <= 0.05,
        first_layer.preference >= 2.0,
        both_layers.exponential_error <= 0.1,
        both_layers.preference <= -1.0,
        first_layer.outside_growth >= 1.0,
        both_layers.outside_growth <= 0.0,
    ),
    control=Control(
        "the two arms exchanged",
        lambda s: {
            "both layers": _frozen(s, second=0.0),
            "first layer alone": _frozen(s, second=1.0),
        },
    ),
    plots=(
        Plot(
            "Loss with trained and frozen second layer",
            "step",
            "test loss",
            (
                PlotLine("both layers", "test_loss", "both layers"),
                PlotLine("first layer alone", "test_loss", "first layer only, norm 1"),
            ),
            log_y=True,
        ),
    ),
    **notes("glasgow2023/frozen"),
)
