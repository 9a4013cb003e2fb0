"""Malach, Shalev-Shwartz (2020), "Learning Boolean Circuits with Neural Networks": local correlation decides what layerwise descent learns.

unlazy reproduce 'malach2019/*'     some minutes on two cores
"""

from __future__ import annotations

from typing import NamedTuple

from unlazy.experiments.circuits import Enumeration, GenerativeMargin, LocalCorrelation, ParityConstruction, ParityMargin, PushForward
from unlazy.experiments.depth import DeepRecovery, LeastWidth, SignRank
from unlazy.experiments.layerwise import LeastSample, RecoverySweep, ThreeLevels, Uncorrelated
from unlazy.lab.judging import Arm, Check, Claim, Instrument, Plot, Published, Quantity, Scale, Series
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.layerwise import Layerwise
from unlazy.learners.tree import end_to_end, layerwise_network
from unlazy.naming import Named
from unlazy.networks import MirroredInit
from unlazy.probes import Accuracy
from unlazy.tasks.circuit import NAMES
from unlazy.tasks.circuit_families import BiasedParity, GenerativeCircuits, ProductCircuits

CITATION = "E. Malach, S. Shalev-Shwartz. Learning Boolean Circuits with Neural Networks. arXiv:1910.11923, 2020."

#: Rounding of exact sums of doubles.
EXACT = 1e-12
ONE_RUN: dict[Scale, int] = {"smoke": 1, "laptop": 1, "paper": 1}
TEN_RUNS: dict[Scale, int] = {"smoke": 1, "laptop": 10, "paper": 10}


class Figure1Size(NamedTuple):
    """Sizes of Figure 1."""

    n: int
    k: int
    m: int
    steps: int
    batch: int
    test: int


FIGURE1_SIZES: dict[Scale, Figure1Size] = {
    "smoke": Figure1Size(n=12, k=2, m=8, steps=60, batch=32, test=200),
    "laptop": Figure1Size(n=128, k=5, m=64, steps=7_000, batch=512, test=10_000),
    "paper": Figure1Size(n=128, k=5, m=64, steps=12_000, batch=512, test=10_000),
}


def fully_connected(m: int, n: int, steps: int, batch: int, *, rate: float = 3e-3, record: int = 14, fresh: bool = True) -> GradientDescent:
    """A two-layer ReLU network of 2m neurons, trained by Adam."""
    init = MirroredInit(m=m, w_scale=n**-0.5, b_scale=0.1, a_scale=0.1, activation="relu")
    rates = {"w": rate, "b": rate, "a": rate, "c": rate}
    descent = Descent(rates, steps=steps, batch=batch, loss="logistic", optimiser="adam")
    return GradientDescent(init, (descent,), record=tuple(range(0, steps, max(1, steps // record))), fresh=fresh)


def figure1(scale: Scale) -> dict[str, Arm]:
    """The same network on the same parity problem, with fair and with biased bits."""
    size = FIGURE1_SIZES[scale]
    learner = fully_connected(size.m, size.n, size.steps, size.batch)
    laws = {"uniform": 0.5, "biased": 0.6}
    probes = (Accuracy(size.test, loss="logistic"),)
    return {name: Arm(BiasedParity(size.n, size.k, p), learner, size.steps * size.batch, probes) for name, p in laws.items()}


FIGURE1 = Claim(
    id="malach2019/figure1",
    where="Figure 1 (Section 1)",
    kind="figure",
    statement=(
        "A two-layer ReLU network of 128 neurons trained by Adam learns the parity of 5 out of 128 bits perfectly when each bit is 1 with "
        "probability 0.6, and stays at chance when the bits are fair."
    ),
    study=figure1,
    checks=(
        Check(Quantity("biased", "test_accuracy"), lower=99.0),
        Check(Quantity("uniform", "test_accuracy"), lower=47.0, upper=53.0),
    ),
    published=(
        Published(Quantity("biased", "test_accuracy"), 100.0, 1.0),
        Published(Quantity("uniform", "test_accuracy"), 50.0, 3.0),
    ),
    deviations=(
        "The paper names neither loss, batch nor step size: logistic loss, fresh batches of 512, Adam with step size 0.003, chosen on seeds "
        "0 and 1.",
        "Neurons are drawn in mirrored pairs, so that the initial network is zero.",
    ),
)

SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 8, 16), "paper": (4, 8, 16)}

TASK_CIRCUIT = Claim(
    id="malach2019/task-circuit",
    where="Section 3",
    kind="task",
    statement="Full binary trees of arbitrary two-bit gates: all gates at once, correlations and influences equal enumeration of all inputs.",
    study=lambda scale: {"circuits": Instrument(Enumeration(SIZES[scale], circuits=2 if scale == "smoke" else 10))},
    checks=(
        Check(Quantity("circuits", "evaluation_errors"), upper=0.0),
        Check(Quantity("circuits", "print_errors"), upper=0.0),
        Check(Quantity("circuits", "correlation_gap"), upper=EXACT),
        Check(Quantity("circuits", "influence_gap"), upper=EXACT),
    ),
    deviations=("The influence is that on the output of the whole circuit above a level; the text names one level's map alone.",),
    seeds=ONE_RUN,
    least_seeds=1,
)

PARITY_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 16), "laptop": (4, 16, 64, 256), "paper": (4, 16, 64, 256, 1024)}

TASK_PRODUCT = Claim(
    id="malach2019/task-product",
    where="Sections 4 and 5.1, Lemma 5",
    kind="task",
    statement="A parity of log n bits is a tree circuit; under biased independent bits its influencing gates are correlated with the label.",
    study=lambda scale: {"parity": Instrument(ParityConstruction(PARITY_SIZES[scale]))},
    checks=(
        Check(Quantity("parity", "label_errors"), upper=0.0),
        Check(Quantity("parity", "gap"), lower=1 - 1e-9, upper=1 + 1e-9),
        # The construction as printed has constant gates with influence, for which |c| = E y.
        Check(Quantity("parity", "printed_gap"), upper=EXACT),
        Check(Quantity("parity", "frequency_z"), upper=5.0),
    ),
    deviations=(
        "Gates with one relevant side pass it on instead of multiplying it with a constant: the printed construction of Lemma 5 computes the "
        "same function but breaks the local correlation assumption.",
    ),
    seeds=ONE_RUN,
    least_seeds=1,
)

PUSH_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 8, 16), "paper": (4, 8, 16)}

TASK_GENERATIVE = Claim(
    id="malach2019/task-generative",
    where="Section 5.2, Lemma 9",
    kind="task",
    statement="Each level of a circuit maps the generative law of its inputs exactly to that of its outputs: Γ_i(D⁽ⁱ⁾) = D⁽ⁱ⁻¹⁾.",
    study=lambda scale: {"generative": Instrument(PushForward(PUSH_SIZES[scale], sample=20_000 if scale == "smoke" else 1_000_000))},
    checks=(
        Check(Quantity("generative", "distance"), upper=EXACT),
        # 65,536 cells: χ² per degree of freedom is within 1 ± 0.03 with overwhelming probability.
        Check(Quantity("generative", "chi_square"), lower=0.95, upper=1.05),
    ),
    deviations=("For the value −1 a pattern is drawn from the complement; the text prints the same set twice.",),
    seeds=ONE_RUN,
    least_seeds=1,
)

LEARNER = Claim(
    id="malach2019/learner",
    where="Algorithm 1, Lemma 15",
    kind="learner",
    statement=(
        "The tree network trained through its loss, gates trained on four numbers each, and gates trained on the law of the sample become "
        "the same gates. The loss must penalise λ|1 + ŷ|: with λ|1 − ŷ| as printed, OR(x1, x3) is not learned, although it satisfies all "
        "assumptions."
    ),
    study=lambda scale: {"levels": Instrument(ThreeLevels(4, 100, circuits=1, limit=500) if scale == "smoke" else ThreeLevels(8, 400))},
    checks=(
        Check(Quantity("levels", "different"), upper=0.0),
        Check(Quantity("levels", "error"), upper=0.0),
        Check(Quantity("levels", "literal_error"), upper=0.0),
        Check(Quantity("levels", "printed_error"), lower=10.0),
        Check(Quantity("levels", "literal_printed_error"), lower=10.0),
    ),
    deviations=(
        "Regulariser λ|1 + ŷ| instead of the printed λ|1 − ŷ|: its derivative is the +λ of the proofs.",
        "A layer stops when all its gradients are exactly zero, which is where further steps change nothing.",
        "Step size n_i/(16√2·k) of Lemma 14, which is n_i times that of Theorems 2 and 4.",
    ),
)

LCA_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4,), "laptop": (4, 8), "paper": (4, 8, 16)}

LCA = Claim(
    id="malach2019/lca",
    where="Assumption 1, Properties 1–3, Lemma 3",
    kind="lemma",
    statement="Circuits with local correlation under product laws satisfy Properties 1 to 3, with ε ≥ Δ²/4.",
    study=lambda scale: {"lemma 3": Instrument(LocalCorrelation(LCA_SIZES[scale], circuits=20 if scale == "smoke" else 400))},
    checks=(
        Check(Quantity("lemma 3", "with_lca"), lower=5.0),
        Check(Quantity("lemma 3", "broken"), upper=0.0),
        Check(Quantity("lemma 3", "epsilon_ratio"), lower=1.0),
        Check(Quantity("lemma 3", "checker_gap"), upper=EXACT),
    ),
    deviations=("Gates without influence are set to TRUE first, as the paper assumes without loss of generality.",),
)

POPULATION_SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (4, 8), "laptop": (4, 16, 64, 256), "paper": (4, 8, 16, 32, 64, 128, 256)}
SAMPLE_SIZES: dict[Scale, dict[str, tuple[int, ...]]] = {
    "smoke": {"generative": (4, 8), "parity": (4,)},
    "laptop": {"generative": (4, 16, 64), "parity": (4, 8, 32)},
    "paper": {"generative": (4, 8, 16, 32, 64), "parity": (4, 8, 16, 32)},
}
LEAST_SIZES: dict[Scale, dict[str, tuple[int, ...]]] = {
    "smoke": {"generative": (4, 8), "parity": (4, 8)},
    "laptop": {"generative": (4, 8, 16, 32), "parity": (4, 8, 16)},
    "paper": {"generative": (4, 8, 16, 32, 64), "parity": (4, 8, 16, 32)},
}


def theorem2(scale: Scale) -> dict[str, Arm | Instrument]:
    """Recovery with the law's own statistics and from samples, the least sample, and the same functions learned end to end."""
    sample, least = SAMPLE_SIZES[scale], LEAST_SIZES[scale]
    tries = 2 if scale == "smoke" else 10
    steps, n = (50, 8) if scale == "smoke" else (3_000, 16)
    examples, probes = 8_192, (Accuracy(500 if scale == "smoke" else 10_000, loss="logistic"),)
    arms: dict[str, Arm | Instrument] = {}
    for kind in ("generative", "parity"):
        arms[f"{kind}, population"] = Instrument(RecoverySweep(POPULATION_SIZES[scale], kind=kind, population=True))  # type: ignore[arg-type]
        arms[f"{kind}, samples"] = Instrument(RecoverySweep(sample[kind], kind=kind, population=False))  # type: ignore[arg-type]
        arms[f"{kind}, least sample"] = Instrument(LeastSample(least[kind], kind=kind, tries=tries))  # type: ignore[arg-type]
    arms["generative, plain step size"] = Instrument(RecoverySweep(sample["generative"], kind="generative", population=True, rate="lemma"))
    family, batch = GenerativeCircuits(n), 128
    arms["layerwise"] = Arm(family, Layerwise(margin=(2 / 3) ** (n.bit_length() - 1), precision=64), examples, probes)
    arms["end to end, Adam"] = Arm(family, end_to_end(n, steps=steps, batch=batch, rate=3e-3), examples, probes)
    arms["end to end, SGD"] = Arm(family, end_to_end(n, steps=steps, batch=batch, rate=0.1, optimiser="sgd"), examples, probes)
    arms["fully connected, Adam"] = Arm(family, fully_connected(64, n, steps, batch, fresh=False, record=1), examples, probes)
    return arms


def _recovered(*arms: str) -> tuple[Check, ...]:
    """Every influencing gate and no error at any size."""
    return tuple(
        check
        for arm in arms
        for check in (Check(Quantity(arm, "worst_recovered"), lower=100.0), Check(Quantity(arm, "worst_error"), upper=0.0))
    )


THEOREM2 = Claim(
    id="malach2019/theorem2",
    where="Theorems 2 and 4, Corollaries 7 and 10",
    kind="figure",
    statement=(
        "With local correlation, layerwise gradient descent recovers every influencing gate up to sign and has error zero: random AND/OR/NAND/"
        "NOR circuits under the generative law and biased parities of log n bits, one circuit a size and seed."
    ),
    study=theorem2,
    checks=(
        *_recovered(
            "generative, population", "parity, population", "generative, samples", "parity, samples", "generative, plain step size"
        ),
        Check(Quantity("layerwise", "test_accuracy"), lower=100.0),
        # Polynomial in n, and far fewer examples than the theorem asks for.
        Check(Quantity("generative, least sample", "exponent"), lower=0.5, upper=3.0),
        Check(Quantity("parity, least sample", "exponent"), lower=1.0, upper=4.5),
        Check(Quantity("generative, least sample", "below_theorem"), lower=100.0),
        Check(Quantity("parity, least sample", "below_theorem"), lower=100.0),
    ),
    deviations=(
        "Each gate's step size is that of Lemma 14 divided by its greatest |S_p| (the proof holds for each gate with its own); the arm "
        "'plain step size' runs without.",
        "Samples of about 256/Δ² examples instead of the theorem's number, which is shown beside it.",
        "Width k from Lemma 14 with δ = 0.001, rounded up to a multiple of 32.",
        "Non-influencing gates become −1, not the +1 of the proof: the sign of the printed inequality is turned there. Nothing depends on it.",
        "End-to-end training starts from larger weights than Algorithm 1: from those the signal dies out from level to level.",
    ),
    seeds=TEN_RUNS,
    plots=(
        Plot(
            "Least sample for exact recovery",
            "inputs n",
            "examples",
            (
                Series("generative, least sample", "least", "generative law, measured"),
                Series("parity, least sample", "least", "biased parity, measured"),
                Series("generative, least sample", "theorem", "generative law, Theorem 4", theory=True),
                Series("parity, least sample", "theorem", "biased parity, Theorem 4", theory=True),
            ),
            log_x=True,
            log_y=True,
            caption="The least power of two with which nine of ten circuits are recovered exactly.",
        ),
        Plot(
            "Gradient steps",
            "inputs n",
            "steps of the slowest layer",
            (
                Series("generative, plain step size", "steps", "step size of Lemma 14"),
                Series("generative, population", "steps", "step size scaled by the gate"),
                Series("generative, plain step size", "theorem_steps", "Theorem 4 (n times smaller steps)", theory=True),
            ),
            log_x=True,
            log_y=True,
        ),
    ),
)


def no_correlation(scale: Scale) -> dict[str, Arm | Instrument]:
    """Uniform parity, one gate without correlation, and end-to-end training on the same uniform parity."""
    if scale == "smoke":
        return {"layerwise": Instrument(Uncorrelated(8, 500)), "end to end, Adam": _end_to_end_parity(8, 50, 500, 200)}
    return {"layerwise": Instrument(Uncorrelated(64, 65_536)), "end to end, Adam": _end_to_end_parity(64, 3_000, 16_384, 10_000)}


def _end_to_end_parity(n: int, steps: int, examples: int, test: int) -> Arm:
    learner = end_to_end(n, steps=steps, batch=128, rate=3e-3)
    return Arm(BiasedParity(n, n.bit_length() - 1, 0.5), learner, examples, (Accuracy(test, loss="logistic"),))


NO_CORRELATION = Claim(
    id="malach2019/no-correlation",
    where="Section 4.1",
    kind="figure",
    statement=(
        "Where an influencing gate has no correlation with the label, the same algorithm fails: a parity of fair bits stays at chance, and one "
        "fair bit in a biased parity is enough to lose a gate."
    ),
    study=no_correlation,
    checks=(
        Check(Quantity("layerwise", "uniform_error"), lower=40.0),
        Check(Quantity("layerwise", "uniform_error_sample"), lower=40.0),
        Check(Quantity("layerwise", "gate_error"), lower=10.0),
        Check(Quantity("layerwise", "contrast_error"), upper=0.0),
        Check(Quantity("layerwise", "contrast_error_sample"), upper=0.0),
        Check(Quantity("end to end, Adam", "test_accuracy"), upper=60.0),
    ),
    deviations=("Where Δ is not positive, λ = |E y| + 0.0025.",),
    seeds={"smoke": 1, "laptop": 5, "paper": 10},
)

LEMMA6 = Claim(
    id="malach2019/lemma6",
    where="Lemma 6, Corollary 7",
    kind="lemma",
    statement="For a parity of k = log n bits with p_j at least ξ away from 0, 1/2 and 1: |c_ij| − |E y| ≥ (2ξ)^k, and P(z_ij = 1) ∈ (ξ, 1 − ξ).",
    study=lambda scale: {"parity": Instrument(ParityMargin(PARITY_SIZES[scale], laws=5 if scale == "smoke" else 50))},
    checks=(Check(Quantity("parity", "gap_ratio"), lower=1.0), Check(Quantity("parity", "inside"), lower=0.0)),
    deviations=("Circuits with projection gates; with the construction as printed the lemma's induction meets constant gates.",),
    seeds=ONE_RUN,
    least_seeds=1,
)

LEMMA8 = Claim(
    id="malach2019/lemma8",
    where="Lemma 8, Corollary 10",
    kind="lemma",
    statement="Under the generative law of an AND/OR/NAND/NOR circuit, |c_ij| = (2/3)^i at every node of level i, and E y = 0.",
    study=lambda scale: {"generative": Instrument(GenerativeMargin(PARITY_SIZES[scale]))},
    checks=(
        Check(Quantity("generative", "gap"), upper=EXACT),
        # As printed, the recursion of the proof leaves the probabilities.
        Check(Quantity("generative", "printed_least"), upper=-0.01),
    ),
    deviations=(
        "P(x = 1) after AND is 2p/3 + 1/3; the proof prints 2p/3 − 1/3 and a superfluous term for OR. The result is not affected.",
        "The proof ends with (2/3)^d for every level; at level i it is (2/3)^i, so that d is the worst.",
    ),
    seeds=ONE_RUN,
    least_seeds=1,
)

SHAPES: dict[Scale, tuple[tuple[int, int], ...]] = {
    "smoke": ((1, 1), (1, 2)),
    "laptop": ((1, 1), (1, 2), (2, 2), (3, 2), (2, 4)),
    "paper": ((1, 1), (1, 2), (2, 2), (3, 2), (2, 4)),
}


def depth_separation(scale: Scale) -> dict[str, Instrument]:
    """Sign-rank on both sides, the width a shallow network takes, and the deep learner."""
    small = scale == "smoke"
    starts, training = (2, 300) if small else (3, 3_000) if scale == "laptop" else (10, 20_000)
    return {
        "sign-rank": Instrument(SignRank(6 if small else 8, terms=2 if small else 4)),
        "two layers": Instrument(LeastWidth(SHAPES[scale], starts=starts, training=training)),
        "tree": Instrument(DeepRecovery((1, 2) if small else (1, 2, 4))),
    }


DEPTH_SEPARATION = Claim(
    id="malach2019/depth-separation",
    where="Theorems 11 and 12, Lemma 23, Corollary 13",
    kind="bound",
    statement=(
        "f_m = ⋀ ⋁ (x ∧ y) is a tree circuit that layerwise descent learns exactly, while two-layer networks need widths that grow with m: their "
        "sign-rank is at most 4Bkn′. At sizes that can be listed the lower bound on the width is below one, so that only growth is seen."
    ),
    study=depth_separation,
    checks=(
        Check(Quantity("tree", "error"), upper=0.0),
        Check(Quantity("tree", "recovered"), lower=100.0),
        Check(Quantity("tree", "error_sample"), upper=0.0),
        Check(Quantity("sign-rank", "rank_ratio"), upper=1.0),
        Check(Quantity("sign-rank", "inner_product"), lower=1 - 1e-9, upper=1 + 1e-9),
        Check(Quantity("sign-rank", "razborov_sherstov"), lower=1.0),
        Check(Quantity("two layers", "width"), lower=4.0),
    ),
    deviations=(
        "The constant in 2^Ω(m) is not known: Forster's bound and the weighted bound of Razborov and Sherstov are evaluated instead.",
        "Between f_1 (2 inputs) and f_2 (16 inputs) lie ⋀_m ⋁_2; f_3 has 2^54 inputs and cannot be listed.",
        "Widths are those at which training by Adam found an exact network, so they bound the least width from above.",
    ),
    plots=(
        Plot(
            "Width of an exact two-layer network",
            "inputs",
            "neurons",
            (
                Series("two layers", "width", "two layers, trained by Adam"),
                Series("two layers", "tree", "tree of width-4 gates", theory=True),
            ),
            log_x=True,
            caption="Functions ⋀_m ⋁_r (x ∧ y) with (m, r) = (1, 1), (1, 2), (2, 2), (3, 2), (2, 4), right on all inputs.",
        ),
    ),
)

CLAIMS = (
    FIGURE1,
    TASK_CIRCUIT,
    TASK_PRODUCT,
    TASK_GENERATIVE,
    LEARNER,
    LCA,
    THEOREM2,
    NO_CORRELATION,
    LEMMA6,
    LEMMA8,
    DEPTH_SEPARATION,
)

TASKS = {
    "malach2019/figure1": Named(BiasedParity(128, 5, 0.6), "Figure 1: parity of 5 out of 128 biased bits"),
    "malach2019/task-circuit": Named(ProductCircuits(16, gates=NAMES), "Section 3: random circuits of all sixteen gates on biased bits"),
    "malach2019/task-product": Named(BiasedParity(32, 5, 0.75), "Section 5.1: parity of log n biased bits"),
    "malach2019/task-generative": Named(GenerativeCircuits(32), "Section 5.2: random AND/OR/NAND/NOR circuits under the generative law"),
}

LEARNERS = {
    "malach2019/learner": Named(Layerwise(margin=(2 / 3) ** 5, precision=64), "Algorithm 1 through the statistics of its gates, n = 32"),
    "malach2019/learner-network": Named(
        layerwise_network(8, margin=(2 / 3) ** 3, steps=5_000), "Algorithm 1 on the literal tree network, n = 8"
    ),
    "malach2019/end-to-end": Named(end_to_end(16, steps=3_000, batch=128, rate=3e-3), "the same tree trained as a whole by Adam, n = 16"),
    "malach2019/figure1-network": Named(fully_connected(64, 128, 7_000, 512), "Figure 1: two-layer ReLU network, Adam"),
}
