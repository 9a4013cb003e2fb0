"""Claims on layerwise learning: Algorithm 1, Theorems 2 and 4, corollaries, and its failure."""

from __future__ import annotations

from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm, arms
from unlazy.learners.circuits.tree import layerwise_network
from unlazy.papers.malach2019.layers import LayerLemmas, lemma14_width
from unlazy.papers.malach2019.recovering import (
    Kind,
    margin_of,
    random_circuits,
    recovery_sweep,
    smallest_sample,
    three_levels,
)
from unlazy.papers.malach2019.theorem_runs import (
    DELTA,
    NEURONS_OF_GATE,
    Drawn,
    TheoremRuns,
    theorem_width,
)
from unlazy.papers.malach2019.uncorrelated import UncorrelatedGates
from unlazy.probes.performance import Performance

KINDS: tuple[Kind, ...] = ("generative", "parity")


def learner(scale: Scale, *, printed_sign: bool = False) -> dict[str, StudyArm]:
    """Return three implementations on the same samples, some with unbalanced labels."""
    if scale == "smoke":
        return {"levels": three_levels(4, 100, circuits=1, limit=500, printed_sign=printed_sign)}
    return {
        "levels": three_levels(
            8, 400, circuits=2 if scale == "laptop" else 8, printed_sign=printed_sign
        )
    }


levels = arm("levels")
LEARNER = Claim(
    id="malach2019/learner",
    where="Section 3 and Algorithm 1; gradient in the proof of Lemma 15",
    kind="learner",
    statement=(
        "Algorithm 1 trains one layer after the other on E[ℓ(ŷ, y) + λ|1 − ŷ|] of the pooled "
        "output. This equals training each neural gate separately: the gradient of a weight is "
        "(2/n_i)·E[(λ − y)·∂g]. With LCA it learns the target."
    ),
    study=learner,
    checks=(
        (levels.different <= 0.0).by_paper(),
        (levels.error <= 0.0).by_paper(),
        (levels.literal_error <= 0.0).by_paper(),
    ),
    control=Control(
        "the regularizer as printed, λ|1 − ŷ|, in the tree network",
        lambda scale: learner(scale, printed_sign=True),
    ),
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    corrections=("malach2019/regulariser",),
    **notes("malach2019/learner"),
)

LITERAL_SIZES: dict[Scale, dict[Drawn, tuple[int, ...]]] = {
    "smoke": {"generative": (4,), "parity": (4,), "product": (4,)},
    "laptop": {"generative": (4, 8, 16), "parity": (4, 8), "product": (4, 8)},
    "paper": {"generative": (4, 8, 16), "parity": (4, 8, 16), "product": (4, 8, 16)},
}
RUNS: dict[Scale, int] = {"smoke": 1, "laptop": 3, "paper": 8}


def theorem2(scale: Scale, *, correlated: bool = True) -> dict[str, StudyArm]:
    """Return Algorithm 1 with the |S|, T, η and k of the theorems, per kind of target."""
    return {
        kind: TheoremRuns(sizes, kind=kind if correlated else "uncorrelated", circuits=RUNS[scale])
        for kind, sizes in LITERAL_SIZES[scale].items()
    }


def _max_size(scale: Scale) -> int:
    return max(max(sizes) for sizes in LITERAL_SIZES[scale].values())


product, generative, parity = arms("product", "generative", "parity")
THEOREM2 = Claim(
    id="malach2019/theorem2",
    where="Theorems 2 and 4",
    kind="figure",
    statement=(
        "Fix δ, Δ, ε ∈ (0, ½), n = 2^d, k ≥ log(2nd/δ)/log(4/3), η ≤ 1/(16√2·k), λ = E y + Δ/4, "
        "‖W₀‖_max ≤ 1/(4√2·k). If D is separated by h ∈ H and satisfies Properties 1–3 with Δ and "
        "ε, and |S| > 2¹¹/(ε²Δ²)·log(8nd/δ), then Algorithm 1 with T > 6n/(√2·η·ε·Δ) steps per "
        "layer returns with probability at least 1 − δ a function with zero error on D (Theorem "
        "4). For a Δ-non-degenerate product distribution with LCA, |S| > 2¹⁵/Δ⁶·log(8nd/δ) and T "
        "> 24n/(√2·η·Δ³) suffice (Theorem 2)."
    ),
    study=theorem2,
    checks=tuple((kind.failed <= DELTA).by_paper() for kind in (generative, parity, product)),
    conditions=(
        Condition(
            "k ≥ log(2nd/δ)/log(4/3), δ = 0.05, at the largest n",
            lambda scale: NEURONS_OF_GATE,
            lambda scale: theorem_width(_max_size(scale)),
        ),
        *(
            Condition(f"{kind}: {name} ÷ required {name}", arm(kind)[measure], lambda scale: 1.0)
            for kind in ("generative", "parity", "product")
            for name, measure in (("|S|", "sample_share"), ("T", "steps_share"))
        ),
    ),
    plots=(
        Plot(
            "Gradient steps at the theorem's learning rate",
            "inputs n",
            "steps of the slowest layer",
            (
                PlotLine("generative", "steps", "generative"),
                PlotLine("parity", "steps", "parity"),
                PlotLine("generative", "theorem_steps", "generative, T", theory=True),
                PlotLine("parity", "theorem_steps", "parity, T", theory=True),
            ),
            log_x=True,
            log_y=True,
        ),
    ),
    control=Control(
        "parities of uniform bits, without local correlation, with |S| and T of biased bits",
        lambda scale: theorem2(scale, correlated=False),
    ),
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    corrections=("malach2019/regulariser",),
    **notes("malach2019/theorem2"),
)

POPULATION_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (4, 8),
    "laptop": (4, 16, 64, 256),
    "paper": (4, 8, 16, 32, 64, 128, 256, 512),
}
SAMPLE_SIZES: dict[Scale, dict[Kind, tuple[int, ...]]] = {
    "smoke": {"generative": (4, 8), "parity": (4,)},
    "laptop": {"generative": (4, 16, 64), "parity": (4, 8, 32)},
    "paper": {"generative": (4, 8, 16, 32, 64, 128), "parity": (4, 8, 16, 32)},
}
MIN_SIZES: dict[Scale, dict[Kind, tuple[int, ...]]] = {
    "smoke": {"generative": (4, 8), "parity": (4, 8)},
    "laptop": {"generative": (4, 8, 16), "parity": (4, 8)},
    "paper": {"generative": (4, 8, 16, 32, 64), "parity": (4, 8, 16, 32)},
}


#: Inputs, examples and steps per layer of tree networks trained through their loss.
NETWORK_SIZES: dict[Scale, tuple[int, int, int]] = {
    "smoke": (4, 200, 500),
    "laptop": (8, 1_000, 20_000),
    "paper": (8, 1_000, 20_000),
}


def corollary10(scale: Scale, *, correlated: bool = True) -> dict[str, StudyArm]:
    """Return recovery from exact statistics, from samples and by the network, and sample sizes."""
    n, examples, steps = NETWORK_SIZES[scale]
    network = layerwise_network(
        n, margin=margin_of("generative", n), steps=steps, printed_sign=True, precision=64
    )
    circuits = random_circuits("generative", n, correlated=correlated)
    arms: dict[str, StudyArm] = {
        "generative, network": Arm(circuits, network, examples, (Performance(10_000),))
    }
    for kind in KINDS:
        arms[f"{kind}, population"] = recovery_sweep(
            POPULATION_SIZES[scale], kind, population=True, correlated=correlated
        )
        arms[f"{kind}, samples"] = recovery_sweep(
            SAMPLE_SIZES[scale][kind], kind, population=False, correlated=correlated
        )
        tries = 2 if scale == "smoke" else 10
        arms[f"{kind}, least sample"] = smallest_sample(
            MIN_SIZES[scale][kind], kind, tries=tries, correlated=correlated
        )
    return arms


COROLLARY10 = Claim(
    id="malach2019/corollary10",
    where="Corollaries 7 and 10",
    kind="figure",
    statement=(
        "Algorithm 1, with its regularizer as printed, returns h_C with probability at least 1 − "
        "δ, with run-time and sample size polynomial in n, for parities of log n bits under "
        "product distributions bounded away from ½, and for every AND/OR/NAND/NOR circuit under "
        "its generative distribution."
    ),
    study=corollary10,
    checks=(
        *(
            check
            for kind in KINDS
            for source in ("population", "samples")
            for check in (
                (arm(f"{kind}, {source}").worst_recovered >= 100.0).by_paper(),
                (arm(f"{kind}, {source}").worst_error <= 0.0).by_paper(),
            )
        ),
        (arm("generative, network").test_accuracy >= 100.0).by_paper(),
        # The theorem's sample size suffices, so the smallest sufficient one is at most that.
        *((arm(f"{kind}, least sample").worst_share <= 1.0).by_paper() for kind in KINDS),
    ),
    plots=(
        Plot(
            "Smallest sample size for exact recovery",
            "inputs n",
            "examples",
            (
                PlotLine("generative, least sample", "least", "generative"),
                PlotLine("parity, least sample", "least", "parity"),
                PlotLine("generative, least sample", "theorem", "generative, Thm 4", theory=True),
                PlotLine("parity, least sample", "theorem", "parity, Thm 4", theory=True),
            ),
            log_x=True,
            log_y=True,
            caption="Smallest power of two at which nine of ten circuits are recovered exactly.",
        ),
    ),
    control=Control(
        "XOR and XNOR gates under the generative distribution, and parities of uniform bits: no "
        "gate is correlated with the label",
        lambda scale: corollary10(scale, correlated=False),
    ),
    # Eleven checks (Holm): eight equal values outside of a bound are needed.
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    **notes("malach2019/corollary10"),
)

LAYER_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4,), "laptop": (4, 8), "paper": (4, 8, 16)}
LAYER_CIRCUITS: dict[Scale, int] = {"smoke": 1, "laptop": 4, "paper": 20}

layers = arm("layers")
LEMMA14 = Claim(
    id="malach2019/lemma14",
    where="Lemmas 14–19, 21, 22, Corollary 20 (Appendix B)",
    kind="lemma",
    statement=(
        "Train one layer on |S| > 2¹¹/(ε²Δ²)·log(8n_i/δ) examples with k ≥ log(8n_i/δ)/log(4/3), "
        "‖w_l‖ ≤ 1/(4k) and η ≤ n_i/(16√2·k). The population gradient of an active neuron "
        "satisfies −γ̃(p)v_lν_j⟨∂L_Ψ(D), p⟩ > εΔ/(√2·n_i) (15). With probability 1 − δ, the sample "
        "gradient differs from it by at most εΔ/(4√2·n_i) (16) and exceeds εΔ/(2√2·n_i) (17); the "
        "set A_t grows (18); active neurons outside A_t move toward γ̃(p)ν_j (19, 20); some neuron "
        "reaches ηtεΔ/(2√2·n_i) (21); and g_t(p) = γ̃(p)ν_j after t > 6n_i/(√2·η·ε·Δ) steps "
        "(14, 22)."
    ),
    study=lambda scale: {"layers": LayerLemmas(LAYER_SIZES[scale], circuits=LAYER_CIRCUITS[scale])},
    checks=(
        (layers.lemma15 >= 1.0).by_paper(),
        *((layers[name] <= DELTA).by_paper() for name in LayerLemmas.FRACTIONS),
    ),
    conditions=(
        Condition(
            "|S| ÷ (2¹¹/(ε²Δ²)·log(8n_i/δ)), δ = 0.05",
            layers.sample,
            lambda scale: 1.0,
        ),
        Condition(
            "k ≥ log(8n_i/δ)/log(4/3) at the largest n_i",
            lambda scale: NEURONS_OF_GATE,
            lambda scale: lemma14_width(max(LAYER_SIZES[scale])),
        ),
    ),
    control=Control(
        "the regularizer as printed, and 64 examples",
        lambda scale: {
            "layers": LayerLemmas(
                LAYER_SIZES[scale], circuits=LAYER_CIRCUITS[scale], printed_sign=True, examples=64
            )
        },
    ),
    corrections=("malach2019/regulariser", "malach2019/constant-gates"),
    **notes("malach2019/lemma14"),
)

UNIFORM_SIZES: dict[Scale, tuple[int, ...]] = {
    "smoke": (4, 8),
    "laptop": (4, 8, 16, 64),
    "paper": (4, 8, 16, 64, 256),
}

layerwise = arm("layerwise")
NO_CORRELATION = Claim(
    id="malach2019/no-correlation",
    where="Section 4.1, first paragraph",
    kind="figure",
    statement=(
        "If an influencing gate has no correlation with the label, the output of its neural gate "
        "becomes constant on all input patterns, and the algorithm fails to recover the target."
    ),
    study=lambda scale: {"layerwise": UncorrelatedGates(UNIFORM_SIZES[scale])},
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    checks=(
        (layerwise.least_constant >= 1.0).by_paper(),
        (layerwise.recovered <= 0.0).by_paper(),
    ),
    control=Control(
        "bits are +1 with probability 0.85, so that all gates are correlated",
        lambda scale: {"layerwise": UncorrelatedGates(UNIFORM_SIZES[scale], p=0.85)},
    ),
    **notes("malach2019/no-correlation"),
)
