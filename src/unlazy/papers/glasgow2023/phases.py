"""Claims of glasgow2023 on the course of training: its two phases, and the lemmas behind them."""

from __future__ import annotations

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.rules import Check, Quantity, Scale
from unlazy.papers.glasgow2023.deviations import GradientDeviations
from unlazy.papers.glasgow2023.growth import LayerBalance, MarginGrowth, SignalGrowth
from unlazy.papers.glasgow2023.instruments import PopulationGradients, ReducedPhases
from unlazy.papers.glasgow2023.probes import ErrorRate, Portrait, SignalHeavy, WellSpread
from unlazy.papers.glasgow2023.sizes import BATCH, PHASE1_END, RADIUS, SIZES, STEPS, THETA, training


def phase1(scale: Scale) -> dict[str, StudyArm]:
    """A run, the exact gradients, and the reduced dynamics far away."""
    size, run = SIZES[scale], training(scale)
    growth = SignalGrowth(radius=run.radius, step=run.step, ratio=run.ratio)
    return {
        "SGD": run.arm(STEPS, Portrait(), SignalHeavy(), WellSpread(), ErrorRate(size.test), growth),
        "gradients": PopulationGradients(size.gradients, precision=64),
        "d = 10⁶": ReducedPhases(d=1e6, width=64 if scale == "smoke" else 1000, record=tuple(range(0, 161, 10))),
    }


PHASE1 = Claim(
    id="glasgow2023/phase1",
    where="Section 4.1, Lemmas 4.1, C.1, C.4",
    kind="lemma",
    statement=(
        "While the network is small, neurons evolve alone by the exact gradients of L₀: signal parts grow at the rate log(1 + ητ)/η with "
        "τ = 1/√(2π), until for each cluster a tenth of the neurons is mostly signal while E‖a·w‖ ≤ 1 and E‖w_perp + w_opp‖² ≤ 4θ². "
        "Four numbers a neuron reproduce the growth, at d = 10⁶ too."
    ),
    study=phase1,
    checks=(
        Check(Quantity("gradients", "error", 8), upper=1e-6),
        Check(Quantity("gradients", "error", 12), upper=1e-6),
        Check(Quantity("gradients", "rate_ratio"), lower=0.9, upper=1.1),
        Check(Quantity("SGD", "slope_ratio"), lower=0.9, upper=1.1),
        Check(Quantity("SGD", "heavy", PHASE1_END), lower=0.1),
        Check(Quantity("SGD", "size", PHASE1_END), upper=1.0),
        Check(Quantity("SGD", "not_signal", PHASE1_END), upper=0.36),
        Check(Quantity("SGD", "growth_ratio", PHASE1_END), lower=0.95, upper=1.05),
        Check(Quantity("SGD", "growth_ratio"), lower=0.95, upper=1.05),
        Check(Quantity("d = 10⁶", "margin_least"), lower=3.0),
    ),
    deviations=(
        RADIUS,
        BATCH,
        THETA,
        "'Mostly signal' is ‖w_sig‖ > ‖w_perp + w_opp‖; the lemma's ‖w_sig‖ > θ·log^c d is not feasible.",
        "The rate is log(1 + ητ)/η, of discrete steps, and not τ itself.",
    ),
    plots=(
        Plot(
            "Parts of the neurons",
            "time ηt",
            "mean length",
            (
                PlotLine("SGD", "signal", "signal", x="time"),
                PlotLine("SGD", "opposite", "opposite", x="time"),
                PlotLine("SGD", "rest", "rest", x="time"),
            ),
            log_y=True,
            caption="Phase 1: the signal grows out of the initial noise. Phase 2: it dominates, and opposite and rest fade.",
        ),
        Plot(
            "Margins of the four clusters",
            "time ηt",
            "margin y·f(μ)",
            (
                PlotLine("SGD", "margin_1", "+μ₁", x="time"),
                PlotLine("SGD", "margin_2", "−μ₁", x="time"),
                PlotLine("SGD", "margin_3", "+μ₂", x="time"),
                PlotLine("SGD", "margin_4", "−μ₂", x="time"),
            ),
            caption="Margins stay near zero in phase 1 and grow in phase 2 (means over seeds; in one run they leave zero one by one).",
        ),
        Plot(
            "Balance of the margins",
            "time ηt",
            "margin y·f(μ)",
            (
                PlotLine("SGD", "margin_greatest", "greatest of the four", x="time"),
                PlotLine("SGD", "margin_least", "least of the four", x="time"),
                PlotLine("SGD", "margin_least_reduced", "least, reduced dynamics", x="time", theory=True),
            ),
            caption="The cluster that was found first is ahead at first; phase 2 balances.",
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
            caption="The rate of phase 1 holds until signal and rest are of one size.",
        ),
    ),
)


def deviation(scale: Scale) -> dict[str, StudyArm]:
    """Deviations from L₀ along training."""
    return {"SGD": training(scale).arm((0, 10, 20, 30, 40, 60), GradientDeviations(SIZES[scale].points))}


DEVIATION = Claim(
    id="glasgow2023/deviation",
    where="Lemmas C.2, C.3",
    kind="lemma",
    statement=(
        "The gradients of the network's loss differ from those of L₀ by at most 2|a|·E‖a·w‖, and in each coordinate by at most "
        "|a|·(4E|a·w_i| + 2·log(d)·E‖a·w‖·P(|x·w without i| ≤ |w_i|)), for every neuron and at every time."
    ),
    study=deviation,
    checks=tuple(
        Check(Quantity("SGD", measure, step), upper=1.0)
        for measure in ("first_ratio", "second_ratio", "coordinate_ratio")
        for step in (0, 20, 40, 60)
    ),
    deviations=(RADIUS, BATCH, "Expectations are means over fresh examples; the term d^{−ω(1)} of Lemma C.3 is left out."),
    plots=(
        Plot(
            "Deviation over its bound",
            "step",
            "greatest ratio of a neuron",
            (
                PlotLine("SGD", "first_ratio", "first layer (C.2)"),
                PlotLine("SGD", "second_ratio", "second layer (C.2)"),
                PlotLine("SGD", "coordinate_ratio", "coordinates (C.3)"),
            ),
            log_y=True,
            caption="At a ratio of 1 the bound would be reached. Lemma C.3 is meant for phase 1, the first 24 steps or so.",
        ),
    ),
)


def phase2(scale: Scale) -> dict[str, StudyArm]:
    """Margins step by step."""
    run = training(scale, ratio=8.0)
    return {"SGD": run.arm(tuple(range(30, 61)), Portrait(), SignalHeavy(), MarginGrowth(step=run.step))}


PHASE2 = Claim(
    id="glasgow2023/phase2",
    where="Definition 4.2, Lemmas 4.4, D.3",
    kind="lemma",
    statement=(
        "Once the network is signal-heavy it stays so: a step multiplies the least margin by at least 1 + 2ητ(1 − o(1))·g_max and the "
        "greatest by at most 1 + 2ητ(1 + o(1))·g_min, τ = √2/4, so that margins grow and balance."
    ),
    study=phase2,
    checks=(
        *(Check(Quantity("SGD", "least_ratio", step), lower=0.85) for step in (30, 40, 55)),
        *(Check(Quantity("SGD", "greatest_ratio", step), upper=1.25) for step in (30, 40, 55)),
        Check(Quantity("SGD", "spread", 55), upper=1.2),
        Check(Quantity("SGD", "log10_zeta_plain", 55), upper=-1.0),
    ),
    deviations=(
        RADIUS,
        BATCH,
        "o(1) is read as 0.15 for the least and 0.25 for the greatest margin, in averages over five steps.",
        "Definition 4.2 asks for ζ ≤ e^{−10H} with a weight e^{6H} on w_perp, which cannot be met here: the least ζ (log10_zeta) "
        "stays above 10 and grows with H. With weight 1 (log10_zeta_plain) it falls below 0.1, and that is what is checked.",
        "Margins of the whole network stand for those of its heavy neurons.",
    ),
    plots=(
        Plot(
            "Growth of the margins over the stated factors",
            "step",
            "ratio",
            (PlotLine("SGD", "least_ratio", "least margin"), PlotLine("SGD", "greatest_ratio", "greatest margin")),
            caption="The lemma asks for at least 1 − o(1) of the least margin and at most 1 + o(1) of the greatest.",
        ),
    ),
)


def balance(scale: Scale) -> dict[str, StudyArm]:
    """Balance of the layers at every step."""
    run = training(scale)
    return {"SGD": run.arm(tuple(range(61)), LayerBalance(radius=run.radius, step=run.step))}


BALANCE = Claim(
    id="glasgow2023/balance",
    where="Lemma B.13",
    kind="lemma",
    statement="|a| ≤ ‖w‖ is kept for all neurons at every step, and ‖w‖² − a² grows by at most 4η²a² in a step.",
    study=balance,
    checks=(
        *(Check(Quantity("SGD", "excess", step), upper=0.0) for step in (5, 30, 60)),
        *(Check(Quantity("SGD", "drift_ratio", step), upper=1.0) for step in (5, 30, 60)),
    ),
    deviations=(RADIUS, BATCH, "The lemma asks for η ≤ 1/4; η = 0.4 is used."),
)


def frozen(scale: Scale) -> dict[str, StudyArm]:
    """Both layers, and the first alone."""
    run, record, probes = training(scale), tuple(range(0, 201, 20)), (Portrait(), SignalHeavy(), ErrorRate(SIZES[scale].test))
    return {
        "both layers": run.arm(record, *probes),
        "first layer alone": run.arm(record, *probes, freeze_second=True),
    }


FROZEN = Claim(
    id="glasgow2023/frozen",
    where="Remark 4.3",
    kind="figure",
    statement=(
        "With the second layer frozen the signal-heavy hypothesis is not kept and margins grow linearly, not exponentially; what is lost "
        "is the loss, not the labels: the first layer alone classifies as well."
    ),
    study=frozen,
    checks=(
        Check(Quantity("both layers", "error"), upper=0.01),
        Check(Quantity("first layer alone", "error"), upper=0.01),
        Check(Quantity("both layers", "test_loss"), upper=0.02),
        Check(Quantity("first layer alone", "test_loss"), lower=0.5),
        Check(Quantity("both layers", "log10_zeta_plain"), upper=-1.0),
        Check(Quantity("first layer alone", "log10_zeta_plain"), lower=0.0),
    ),
    deviations=(
        RADIUS,
        BATCH,
        "The hypothesis is measured with weight 1 on w_perp (see glasgow2023/phase2).",
        "With a frozen second layer the least ζ is set by the clause E‖w‖² ≤ E a² + ζH alone, and tends to 2 by its form: the check shows "
        "that the layers are not balanced, not that other neurons gain mass. E‖w_opp + w_perp‖² (not_signal) falls here too.",
    ),
    plots=(
        Plot(
            "Loss with and without the second layer",
            "step",
            "test loss",
            (PlotLine("both layers", "test_loss", "both layers"), PlotLine("first layer alone", "test_loss", "first layer alone")),
            log_y=True,
        ),
    ),
)
