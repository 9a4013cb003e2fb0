"""Table 1: parity labels of hidden patterns, six methods.

unlazy reproduce shi2022/table1 --scale paper     a few minutes on two cores

All data here and in Tables 3 to 5 are one family whose structure and class balance are numbers, so that the network with and without
input structure, and all class balances, run in the same compiled programs.

Reference: shi2022, Section 6, Appendix E.1.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from unlazy.lab.arms import Arm
from unlazy.lab.claims import Claim
from unlazy.lab.rules import Check, Published, Quantity, Scale
from unlazy.learners.base import Learner
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.probes.neurons import Alignment, Silhouette
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Family
from unlazy.tasks.dictionary.balance import BalancedParity


class Size(NamedTuple):
    """Sizes of a simulation."""

    d: int
    D: int
    k: int
    m: int
    T: int
    n: int
    batch: int
    test: int


PARITY: dict[Scale, Size] = {
    "smoke": Size(d=24, D=12, k=3, m=16, T=40, n=1_000, batch=100, test=500),
    "laptop": Size(d=500, D=100, k=5, m=100, T=600, n=25_000, batch=1_000, test=10_000),
    "paper": Size(d=500, D=100, k=5, m=300, T=600, n=50_000, batch=1_000, test=10_000),
}


#: The six columns of Table 1 and of Tables 2 to 5.
METHODS = ("Network", "NTK", "RF", "One Step", "Two Step", "Network w/o structure")


def parity_task(size: Size, *, negative: float = 0.5) -> BalancedParity:
    """The structured data of Table 1, with a share of the class −1."""
    return BalancedParity(d=size.d, D=size.D, k=size.k, structure=0.5, negative=negative)


def without_structure(task: BalancedParity) -> BalancedParity:
    """The same where all patterns are fair coins."""
    return dataclasses.replace(task, structure=0.0)


def practical(size: Size) -> TwoStep:
    """The practical schedule for the data of Table 1. Its constants γ and σ̃ are those of the structured data throughout.

    Deviation: without input structure γ = 0 and σ_a would be infinite; the values of the structured data are used there too.
    """
    moments = parity_task(size).moments
    return TwoStep.practical(k=size.k, m=size.m, T=size.T, gamma=float(moments.gamma), sigma=float(moments.sigma), batch=size.batch)


def verbatim(size: Size) -> TwoStep:
    """The schedule of Theorem 26 to the letter for the data of Table 1."""
    moments = parity_task(size).moments
    return TwoStep.theorem(k=size.k, m=size.m, T=size.T, gamma=float(moments.gamma), sigma=float(moments.sigma), batch=size.batch)


def curve_steps(T: int) -> tuple[int, ...]:
    """Recorded steps: 0, 1, 2, and a few that are spread over the rest."""
    return tuple(sorted({0, 1, 2, *(round(T * share) for share in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75))}))


def contest(size: Size, schedule: TwoStep, structured: Family, unstructured: Family, note: str = "") -> dict[str, Arm]:
    """The six methods of a table, what its text and figures speak of beside them, and rivals whose training went to its end.

    `note` is put behind their names.
    """
    steps = curve_steps(size.T)
    measure = (Performance(size.test), Alignment())
    learners: dict[str, Learner] = {
        "Network": schedule.network(steps),
        "NTK": schedule.tangent(steps),
        "RF": schedule.random_features(steps),
        "One Step": schedule.frozen(1, steps),
        "Two Step": schedule.frozen(2, steps),
        "One Step (converged)": schedule.frozen(1, readout="converged"),
        "Two Step (converged)": schedule.frozen(2, readout="converged"),
        "RF (converged)": schedule.random_features(readout="converged"),
        "NTK (ten times the steps)": schedule.tangent(longer=10),
    }
    arms = {name: Arm(structured, learner, size.n, measure) for name, learner in learners.items()}
    arms |= {f"{name} w/o structure": dataclasses.replace(arms[name], family=unstructured) for name in ("Network", "NTK", "RF")}
    drawn = {name: dataclasses.replace(arms[name], probes=(*measure, Silhouette())) for name in ("Network", "Network w/o structure")}
    return {name + note: arm for name, arm in (arms | drawn).items()}


def table1(scale: Scale) -> dict[str, Arm]:
    """The methods of Table 1."""
    size = PARITY[scale]
    task, schedule = parity_task(size), practical(size)
    return contest(size, schedule, task, without_structure(task))


#: Standard deviations of the printed values by measure: the paper states one below 0.5 % for accuracies, and none for cosines.
SPREADS = {"test_accuracy": 0.5, "train_accuracy": 0.5, "cosine": 0.0}


def printed(rows: Mapping[str, str], note: str = "") -> tuple[Published, ...]:
    """The printed rows of a table by measure: a value for each of `METHODS`, or "–" where none is printed.

    One Step and Two Step are printed for the best classifier on their features, which is the converged one.
    """
    best = {"One Step": "One Step (converged)", "Two Step": "Two Step (converged)"}
    return tuple(
        Published(Quantity(best.get(method, method) + note, measure), value, SPREADS[measure])
        for measure, row in rows.items()
        for method, value in zip(METHODS, row.split(), strict=True)
        if value != "–"
    )


TABLE1 = Claim(
    id="shi2022/table1",
    where="Table 1, Figures 1, 2, 5, 6 (Section 6, Appendix E.1.1)",
    kind="table",
    statement=(
        "On parity labels of hidden patterns, a two-layer network finds the hidden direction in two gradient steps and classifies "
        "perfectly; its tangent kernel and random features do not, and neither does the network where the inputs have no structure."
    ),
    study=table1,
    checks=(
        Check(Quantity("Network", "test_accuracy"), lower=99.9),
        Check(Quantity("Two Step", "test_accuracy"), lower=99.9),
        Check(Quantity("Two Step (converged)", "test_accuracy"), lower=99.9),
        # A third of the neurons and fewer seeds leave wider bands for the rivals at laptop scale.
        Check(Quantity("NTK", "test_accuracy"), lower=82.5, upper=86.5, scales=("paper",)),
        Check(Quantity("NTK", "test_accuracy"), lower=76.0, upper=88.0, scales=("laptop",)),
        Check(Quantity("RF", "test_accuracy"), lower=73.5, upper=79.0, scales=("paper",)),
        Check(Quantity("RF", "test_accuracy"), lower=65.0, upper=82.5, scales=("laptop",)),
        Check(Quantity("One Step", "test_accuracy"), lower=46.0, upper=54.0),
        # Not a published value: on converged features of one step, nothing beats the best linear classifier, which is at 84.4.
        Check(Quantity("One Step (converged)", "test_accuracy"), lower=82.5, upper=86.5),
        Check(Quantity("Network w/o structure", "test_accuracy"), lower=48.0, upper=53.0),
        Check(Quantity("Network", "cosine", 2), lower=0.995),
        Check(Quantity("RF", "cosine"), upper=0.3),
    ),
    published=printed(
        {
            "test_accuracy": "100.0 86.4 76.0 52.2 100.0 52.0",
            "train_accuracy": "100.0 84.0 74.7 51.3 100.0 100.0",
            "cosine": "0.997 – 0.114 0.848 0.997 0.253",
        }
    ),
    deviations=(
        "σ_b = σ_ξ = 0.5 instead of 1/k²; with the theorem's values the classifier stage stays at the best linear classifier.",
        "η₂ of the first layer is set so that ⟨w_i, x⟩ has root mean square σ_b, instead of η₂ = 1.",
        "Steps t > 2: step size 0.3 (first layer), 150/m (second), a tenth of it in the last third, no decay, instead of k²/(T·m^{1/3}).",
        "Steps 1 and 2 weight both classes equally.",
        "The paper gives no step sizes for NTK and RF: 3/m and 15/m, a tenth of it in the last third, chosen on seeds 0–4.",
        "The paper does not name the classifier on One Step and Two Step: SGD and a converged ridge regression are both shown.",
        "Without input structure γ = 0 makes σ_a infinite: the values of the structured data are used.",
        "Inputs are normalised by their exact mean and variance, not by the sample's.",
        "Training runs in the span of the dictionary, with the orthogonal part of the weights carried along: the same algorithm, cheaper.",
    ),
)
