"""Claims on the classifier steps: drift of the first layer, regret bound, and Theorem 1.

Reference: shi2022, Theorem 1, Lemmas 23 to 25, Theorems 26 and 27 (Appendices B.5 to B.7).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from unlazy.lab.arms import Arm, Row, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms, shuffled
from unlazy.lab.trials import Record
from unlazy.papers.shi2022.constants import error_bound, theorem_26
from unlazy.papers.shi2022.drift import ClassifierDrift
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.papers.shi2022.readout import GoodReadout, OnlineDescent
from unlazy.probes.performance import Performance
from unlazy.tasks.dictionary.patterns import ParityMixture


class Listed(NamedTuple):
    """Numbers D of patterns, k of relevant ones, m of pairs of neurons, and T of steps."""

    D: int
    k: int
    m: int
    T: int = 0


#: Tasks whose inputs can be enumerated, with po = 1/2 ≥ k²/D and m ≥ max(k⁴, D) pairs.
LISTABLE: dict[Scale, Listed] = {
    "smoke": Listed(D=6, k=3, m=8, T=20),
    "laptop": Listed(D=18, k=3, m=81, T=100),
    "paper": Listed(D=18, k=3, m=243, T=200),
}
DELTA = 0.05


def _of_lemma23(sizes: dict[Scale, Listed]) -> tuple[Condition, ...]:
    """Return the conditions of Lemma 23, with δ = 1/k³ and γ = 1/4."""

    def log_squared(scale: Scale) -> float:
        size = sizes[scale]
        return math.log(size.D * size.m * size.k**3 / 0.25) ** 2

    return (
        Condition("k ≥ C·log²(Dm/(δγ)), δ = 1/k³", lambda s: sizes[s].k, log_squared, constant="C"),
        Condition(
            "po ≥ C·k²/D", lambda s: 0.5, lambda s: sizes[s].k ** 2 / sizes[s].D, constant="C"
        ),
        Condition("m ≥ C·k⁴", lambda s: sizes[s].m, lambda s: sizes[s].k ** 4, constant="C"),
        Condition("m ≥ D", lambda s: sizes[s].m, lambda s: sizes[s].D),
    )


def _rate(scale: Scale) -> float:
    """Return η of Theorem 26 for t > 2."""
    size = LISTABLE[scale]
    return float(size.k**2 / (size.T * size.m ** (1 / 3)))


def drift(scale: Scale, faster: float = 1.0) -> dict[str, StudyArm]:
    """Return the classifier steps of Theorem 26 on the exact population, with λ = 0 and λ = 0.9."""
    size = LISTABLE[scale]
    later = {round(size.T * fraction) - 2 for fraction in (0.1, 0.2, 0.4, 0.7, 1.0)}
    taken = tuple(sorted({0, 1, 4, *later}))

    def arm(decay: float) -> ClassifierDrift:
        return ClassifierDrift(
            size.D, size.k, size.m, rate=_rate(scale), decay=decay, faster=faster, taken=taken
        )

    return {"no decay": arm(0.0), "λ = 0.9": arm(0.9)}


no_decay, with_decay = arms("no decay", "λ = 0.9")
DRIFT = Claim(
    id="shi2022/lemma24",
    label_free_reason="the step sizes alone bound the drift",
    where="Lemmas 24 and 25 (Appendix B.6)",
    kind="lemma",
    statement=(
        "Under the conditions of Lemma 23, with λ_a = λ_w = λ, step size η in (0, 1) and no noise "
        "for t > 2: |a_i⁽ᵗ⁾| ≤ ηt + O(1/(km²)), ‖w_i⁽ᵗ⁾ − w_i⁽²⁾‖ ≤ O(tηλσ̃/k) + η²t² + "
        "O(t/(km²)) and |b_i⁽ᵗ⁾ − b_i⁽²⁾| ≤ O(tηλ/k²) + η²t² + O(t/(km²)) for all i. For every "
        "second layer ã, the loss at x differs from that after step 2 by at most "
        "‖ã‖₂√‖ã‖₀·(O(tηλσ̃/k) + η²t² + O(t/(km²)))."
    ),
    study=drift,
    checks=tuple(
        check
        for run in (no_decay, with_decay)
        for check in (
            (run.second_ratio <= 1.0).by_paper(),
            (run.weights_ratio <= 1.0).by_paper(),
            *([(run.biases_ratio <= 1.0).by_paper()] if run is no_decay else []),
            run.sharp_ratio <= 1.0,
            (run.loss_ratio <= 1.0).by_paper(),
        )
    ),
    conditions=(
        *_of_lemma23(LISTABLE),
        Condition("η < 1", _rate, lambda s: 1.0, "≤"),
        Condition(
            "‖x‖ ≤ 1 at every input (Lemma 25)",
            no_decay.norm,
            lambda s: 1.0 + 1e-5,
            "≤",
        ),
    ),
    control=Control(
        "the gradients of the classifier steps are 2000 times as large as assumed in the bound",
        lambda scale: drift(scale, 2000.0),
    ),
    corrections=("shi2022/lemma25-norm",),
    plots=(
        Plot(
            title="Drift of the first layer",
            x="steps after step 2",
            y="maximum distance from step 2",
            series=(
                PlotLine("no decay", "weights", "weights"),
                PlotLine("no decay", "bound", "bound", theory=True),
            ),
            log_y=True,
        ),
    ),
    **notes("shi2022/lemma24"),
)


#: Sizes of the linear program.
LINEAR_PROGRAM: dict[Scale, Listed] = {
    "smoke": Listed(D=5, k=3, m=20),
    "laptop": Listed(D=18, k=3, m=81),
    "paper": Listed(D=18, k=3, m=243),
}


def lemma23(scale: Scale, steps_taken: int = 2, b_scale: float = 1.0) -> dict[str, StudyArm]:
    """Return the second layer of minimum ‖ã‖_∞ on the features after two steps."""
    size = LINEAR_PROGRAM[scale]
    return {"two steps": GoodReadout(size.D, size.k, size.m, steps_taken, b_scale)}


two_steps = arm("two steps")
LEMMA23 = Claim(
    id="shi2022/lemma23",
    where="Lemma 23 (Appendix B.5)",
    kind="lemma",
    statement=(
        "After two steps with η⁽¹⁾ = γ²σ̃/(km³), η⁽²⁾ = 1, λ_w⁽¹⁾ = 1/(2η⁽¹⁾), λ_a⁽²⁾ = λ_w⁽²⁾ = "
        "1/(2η⁽²⁾) and σ_ξ = k^(−3/2), with probability at least 1 − δ there is a second layer ã "
        "on the neurons w_i⁽²⁾, b_i⁽²⁾ with hinge loss 0, ‖ã‖₀ = O(m/k), ‖ã‖_∞ = O(k⁵/m), ‖ã‖₂² = "
        "O(k⁹/m). Moreover ‖a⁽²⁾‖_∞ = O(1/(km²)), ‖w_i⁽²⁾‖₂ = O(σ̃/k), |b_i⁽²⁾| = O(1/k²) for all "
        "i."
    ),
    study=lemma23,
    checks=(
        (two_steps.loss <= 1e-6).by_paper().for_share(0.5),
        (two_steps["greatest"] <= 256.0).by_paper().for_share(0.5),
        (two_steps.second <= 1.0).by_paper(),
        two_steps.weights <= math.sqrt(2 * math.log(81 * 3**3) / 3),
        two_steps.bias <= math.sqrt(2 * math.log(81 * 3**3)),
    ),
    conditions=_of_lemma23(LINEAR_PROGRAM),
    control=Control(
        "no step is taken, and biases are three times as large",
        lambda scale: lemma23(scale, 0, 3.0),
    ),
    corrections=("shi2022/lemma23-bias",),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("shi2022/lemma23"),
)


def regret(scale: Scale, convex: bool = True) -> dict[str, StudyArm]:
    """Return online gradient descent on random sequences of convex functions."""
    count = {"smoke": 2, "laptop": 32, "paper": 256}[scale]
    return {
        "online descent": OnlineDescent(
            T={"smoke": 40, "laptop": 200, "paper": 1000}[scale], sequences=count, convex=convex
        )
    }


online = arm("online descent")
THEOREM27 = Claim(
    id="shi2022/theorem27",
    where="Theorem 27 (Appendix B.7)",
    kind="bound",
    statement=(
        "Let f_1, …, f_T be convex and θ_{t+1} = θ_t − η∇f_t(θ_t). For every θ*: (1/T)Σf_t(θ_t) ≤ "
        "(1/T)Σf_t(θ*) + ‖θ*‖²/(2ηT) + ‖θ_1‖·(1/T)Σ‖∇f_t(θ_t)‖ + η(1/T)Σ‖∇f_t(θ_t)‖²."
    ),
    study=regret,
    checks=(
        (online.broken <= 0.0).by_paper(),
        online.tightness.between(0.02, 1.0),
    ),
    control=Control(
        "the functions are not convex: each has a narrow minimum",
        lambda scale: regret(scale, False),
    ),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("shi2022/theorem27"),
)


def error_against_width(
    widths: tuple[int, ...], n: int, *, batch: int, D: int = 30, k: int = 3
) -> Row:
    """Return error and hinge loss of the trained network over m, with T = m^(4/3) steps as in
    Theorem 26, and its bound.
    """
    family = ParityMixture(d=D, D=D, k=k)
    moments = family.moments
    gamma, sigma = float(moments.gamma), float(moments.sigma)
    steps = {m: max(4, round(m ** (4 / 3))) for m in widths}

    def arm(m: int) -> Arm:
        schedule = TwoStep.practical(k=k, m=m, T=steps[m], gamma=gamma, sigma=sigma, batch=batch)
        return Arm(family, schedule.network(), n, (Performance(20_000),))

    def with_bound(m: int, record: Record) -> dict[str, float]:
        error, loss = 1 - record.value("test_accuracy") / 100, record.value("test_loss")
        return {"error": error, "loss": loss, "bound": error_bound(k=k, m=m, T=steps[m])}

    return Row({m: arm(m) for m in widths}, summaries=(_falls,), after=with_bound)


def _falls(widths: np.ndarray, table: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """Return decreases of loss and error between successive widths in `COMPARED`, same seed."""
    pairs = [
        (narrow, wide)
        for narrow, wide in itertools.pairwise(COMPARED)
        if {narrow, wide} <= set(widths)
    ]
    return {
        f"{measure}_fall_{narrow}_{wide}": (
            table[measure][widths == narrow] - table[measure][widths == wide]
        )[0]
        for measure in ("error", "loss")
        for narrow, wide in pairs
    }


WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (2, 8, 128),
    "laptop": (2, 8, 128),
    "paper": (2, 4, 8, 16, 32, 64, 128, 256),
}
#: Widths between which loss and error must decrease.
COMPARED = (2, 8, 128)
#: Required loss ε at the largest width.
EPSILON = 0.05


def theorem1(scale: Scale) -> dict[str, StudyArm]:
    """Return the trained network over its width."""
    n = {"smoke": 500, "laptop": 10_000, "paper": 50_000}[scale]
    return {
        "network": error_against_width(WIDTHS[scale], n, batch=100 if scale == "smoke" else 500)
    }


def _theorem_rate(scale: Scale) -> float:
    """Return η⁽ᵗ⁾ of Theorem 26 at the largest width."""
    m = max(WIDTHS[scale])
    return theorem_26(k=3, m=m, T=round(m ** (4 / 3)), gamma=0.25, sigma=math.sqrt(30) / 2).rest


net = arm("network")
THEOREM1 = Claim(
    id="shi2022/theorem1",
    where="Theorems 1 and 26",
    kind="figure",
    statement=(
        "For δ, ε ∈ (0, 1), if k = Ω(log²(D/(δγ))), po = Ω(k²/D) and max(Ω(k¹²/ε^(3/2)), D) ≤ m ≤ "
        "poly(D), then with properly set hyperparameters (those of Theorem 26, T = m^(4/3)), with "
        "probability at least 1 − δ there is a t ∈ [T] with Pr[sign(g⁽ᵗ⁾(x)) ≠ y] ≤ L(g⁽ᵗ⁾) ≤ ε. "
        "Theorem 26 bounds this loss by O(k⁸/m^(2/3) + k³T/m² + k²m^(2/3)/T), which decreases with "
        "m."
    ),
    study=theorem1,
    checks=(
        net.loss <= EPSILON,
        net.error <= EPSILON / 10,
        net.loss_fall_2_8 >= 0.0,
        net.loss_fall_8_128 >= 0.0,
        net.error_fall_2_8 >= 0.0,
        net.error_fall_8_128 >= 0.0,
    ),
    conditions=(
        Condition(
            f"k ≥ C·log²(D/(δγ)), δ = {DELTA:g}",
            lambda s: 3,
            lambda s: math.log(30 / (DELTA * 0.25)) ** 2,
            constant="C",
        ),
        Condition("po ≥ C·k²/D", lambda s: 0.5, lambda s: 9 / 30, constant="C"),
        Condition(
            f"m ≥ C·k¹²/ε^(3/2), ε = {EPSILON:g}",
            lambda s: max(WIDTHS[s]),
            lambda s: 3**12 / EPSILON**1.5,
            constant="C",
        ),
        Condition("m ≥ D", lambda s: max(WIDTHS[s]), lambda s: 30),
        Condition(
            "step size of the first layer for t > 2 at most η = k²/(Tm^(1/3))",
            lambda s: 0.3,
            _theorem_rate,
            "≤",
        ),
        Condition(
            "step size of the second layer for t > 2 at most η = k²/(Tm^(1/3))",
            lambda s: 150 / max(WIDTHS[s]),
            _theorem_rate,
            "≤",
        ),
    ),
    control=shuffled(theorem1),
    seeds={"smoke": 1, "laptop": 16, "paper": 16},
    plots=(
        Plot(
            title="Error over width",
            x="pairs of neurons m",
            y="error, hinge loss",
            series=(
                PlotLine("network", "error", "error"),
                PlotLine("network", "loss", "hinge loss"),
            ),
            log_x=True,
        ),
        Plot(
            title="Bound of Theorem 26 with constant one",
            x="pairs of neurons m",
            y="bound on the hinge loss",
            series=(PlotLine("network", "bound", "bound", theory=True),),
            log_x=True,
            log_y=True,
        ),
    ),
    **notes("shi2022/theorem1"),
)

CLASSIFIER = (LEMMA23, DRIFT, THEOREM27, THEOREM1)
