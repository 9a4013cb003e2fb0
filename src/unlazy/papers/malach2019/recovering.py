"""Arms of layerwise learning: recovered gates, errors and sample sizes.

Reference: malach2019, Theorems 2 and 4, Sections 4.1 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from unlazy.lab.arms import Arm, Comparison, Repeats, Row
from unlazy.lab.trials import Record
from unlazy.learners.circuits.layerwise import Layerwise
from unlazy.learners.circuits.neural_gates import Rate
from unlazy.learners.circuits.tree import layerwise_network
from unlazy.learners.learning_curves import OnPrefixes
from unlazy.networks.tree import width_for
from unlazy.papers.malach2019.probes import Gates, Recovered, circuit_of
from unlazy.papers.malach2019.theorem_runs import BIAS, parity_margin, theorem_sample, theorem_steps
from unlazy.tasks.base import Family
from unlazy.tasks.circuits.distributions import ProductDistribution
from unlazy.tasks.circuits.families import BiasedParity, FixedCircuit, GenerativeCircuits
from unlazy.tasks.circuits.recovery import recovery

Kind = Literal["generative", "parity"]
#: δ that determines the number of neurons per gate.
DELTA = 0.001
#: Learners on the exact distribution need no examples, but a trial has at least one.
NO_EXAMPLES = 1
#: Number of examples, times Δ². With the printed regularizer, rare patterns decide for parities.
EXAMPLES: dict[Kind, int] = {"generative": 256, "parity": 1024}
#: Number of sample sizes tried, from 1/32 of the size of `sample_for` to that size.
DOUBLINGS = 6
#: If none of them suffices, the result is this multiple of the theorem's sample size, which fails
#: the checks.
NEVER_ENOUGH = 2


def random_circuits(kind: Kind, n: int, *, correlated: bool = True) -> Family:
    """Return generative AND/OR/NAND/NOR circuits, or parities of log₂ n biased bits.

    Unless `correlated`, gates are XOR and XNOR, or bits are uniform. Then no gate is correlated
    with the label.
    """
    if kind == "generative":
        return GenerativeCircuits(n) if correlated else GenerativeCircuits(n, gates=("XOR", "XNOR"))
    return BiasedParity(n, n.bit_length() - 1, BIAS if correlated else 0.5)


def margin_of(kind: Kind, n: int) -> float:
    """Return Δ: (2/3)^d by Lemma 8, or |2p − 1|^{k−1}·(1 − |2p − 1|) for a parity of k bits."""
    d = n.bit_length() - 1
    return (2 / 3) ** d if kind == "generative" else parity_margin(BIAS, d)


def epsilon_of(kind: Kind, n: int) -> float:
    """Return ε of the worst circuit: ¼·(2/3)^d, or (1 − p)² for a parity."""
    return 0.25 * margin_of(kind, n) if kind == "generative" else (1 - BIAS) ** 2


def sample_for(kind: Kind, n: int) -> int:
    """Return the sample size `EXAMPLES`/Δ², rounded up to a power of two."""
    return int(2 ** math.ceil(math.log2(EXAMPLES[kind] / margin_of(kind, n) ** 2)))


def layerwise(
    family: Family,
    margin: float,
    sample: int | None,
    rate: Rate = "scaled",
    *,
    printed_sign: bool = True,
    **settings: Any,
) -> Arm:
    """Return Algorithm 1 on `sample` examples, or on the exact distribution if None.

    `printed_sign`: with the regularizer λ|1 − ŷ| as printed, or else λ|1 + ŷ|.
    """
    source: Literal["law", "sample"] = "law" if sample is None else "sample"
    learner = Layerwise(
        margin=margin,
        delta=DELTA,
        rate=rate,
        source=source,
        printed_sign=printed_sign,
        precision=64,
        **settings,
    )
    return Arm(family, learner, sample or NO_EXAMPLES, (Recovered(),))


def recovery_sweep(
    sizes: tuple[int, ...],
    kind: Kind,
    *,
    population: bool,
    correlated: bool = True,
) -> Row:
    """Return Algorithm 1 on one random circuit per size n.

    `worst_recovered`, `worst_error`: minimum and maximum over sizes up to n. `steps`: steps of the
    slowest layer. `sample`: examples used. `theorem_sample`, `theorem_steps`: |S| and T of
    Theorem 4.
    """
    samples = {n: None if population else sample_for(kind, n) for n in sizes}
    arms = {
        n: layerwise(random_circuits(kind, n, correlated=correlated), margin_of(kind, n), sample)
        for n, sample in samples.items()
    }

    def theory(n: int, record: Record) -> dict[str, float]:
        known = epsilon_of(kind, n), margin_of(kind, n), n
        return {
            "sample": float(samples[n] or 0),
            "theorem_sample": theorem_sample(*known),
            "theorem_steps": theorem_steps(*known, 1 / (16 * math.sqrt(2) * width_for(n, DELTA))),
        }

    return Row(arms, summaries=(_worst,), after=theory)


def _worst(sizes: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        "worst_recovered": np.minimum.accumulate(table["recovered"]),
        "worst_error": np.maximum.accumulate(table["error"]),
    }


def smallest_sample(
    sizes: tuple[int, ...], kind: Kind, *, tries: int, correlated: bool = True
) -> Row:
    """Return the smallest power of two of examples that recovers 90 % of circuits, per size n.

    `least`: that number among prefixes of a sample, or `NEVER_ENOUGH` times the theorem's if none
    suffices. `theorem`: |S| of Theorem 4. `prediction` = 1/Δ². `worst_share`: maximum of
    `least` ÷ `theorem` over sizes up to n.
    """
    return Row({n: _min_sample(n, kind, tries, correlated) for n in sizes}, summaries=(_ratio,))


def _min_sample(n: int, kind: Kind, tries: int, correlated: bool = True) -> Comparison:
    largest = sample_for(kind, n)
    learner = Layerwise(
        margin=margin_of(kind, n), delta=DELTA, rate="scaled", printed_sign=True, precision=64
    )
    sizes = [largest >> back for back in reversed(range(DOUBLINGS)) if largest >> back >= 16]
    arm = Arm(
        random_circuits(kind, n, correlated=correlated),
        OnPrefixes.of(learner, sizes),
        largest,
        (Recovered(),),
    )
    theorem = theorem_sample(epsilon_of(kind, n), margin_of(kind, n), n)

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        runs = records["tries"]
        enough = [
            size
            for size, exact in zip(runs.steps, runs.measurements["exact"], strict=True)
            if exact >= 0.9 - 1e-9
        ]
        smallest = float(min(enough, default=NEVER_ENOUGH * theorem))
        return {"least": smallest, "theorem": theorem, "prediction": 1 / margin_of(kind, n) ** 2}

    return Comparison({"tries": Repeats(arm, tries)}, measure)


def _ratio(sizes: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"worst_share": np.maximum.accumulate(table["least"] / table["theorem"])}


#: OR(x1, x3) with P(x1 = 1) = 0.3 and P(x3 = 1) = 0.4 satisfies the local correlation assumption
#: with Δ = 0.28.
COUNTER_EXAMPLE, COUNTER_MARGIN = FixedCircuit("OR / LEFT LEFT", (0.3, 0.5, 0.4, 0.5)), 0.28
#: Neurons per gate if the tree network is trained through its loss.
NEURONS = 32


def three_levels(
    n: int, sample: int, *, circuits: int = 2, limit: int = 4_000, printed_sign: bool = False
) -> Comparison:
    """Return three implementations of Algorithm 1 on the same samples.

    They are the tree network, gate statistics and the weighted sample. `different`: gates by which
    the gate statistics differ from the other two, mean over `circuits` samples; summed over
    generative circuits with n inputs and a distribution with unbalanced labels. `unsettled`:
    fraction of samples with a final output other than ±1, summed likewise. `error`,
    `literal_error`: exact error in percent on `COUNTER_EXAMPLE`, by gate statistics and by the tree
    network. `printed_sign` uses the regularizer as printed in tree networks and in `error`.
    """
    settings: dict[str, Any] = {"margin": COUNTER_MARGIN, "k": NEURONS}
    network = layerwise_network(
        4, **settings, steps=limit, printed_sign=printed_sign, population=True, precision=64
    )
    arms: dict[str, Any] = {
        "samples": Repeats(
            _same_sample(
                GenerativeCircuits(n), (2 / 3) ** (n.bit_length() - 1), sample, limit, printed_sign
            ),
            circuits,
        ),
        "biased": Repeats(
            _same_sample(COUNTER_EXAMPLE, COUNTER_MARGIN, 4 * sample, limit, printed_sign), circuits
        ),
        "error": layerwise(
            COUNTER_EXAMPLE, COUNTER_MARGIN, None, "lemma", k=NEURONS, printed_sign=printed_sign
        ),
        "literal_error": Arm(COUNTER_EXAMPLE, network, NO_EXAMPLES, (Gates(),)),
    }

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        sums = {
            name: records["samples"].value(name) + records["biased"].value(name)
            for name in ("different", "unsettled")
        }
        literal = _counter_error(records["literal_error"].value("gates"))
        return sums | {"error": records["error"].value("error"), "literal_error": literal}

    return Comparison(arms, measure)


def _counter_error(gates: float) -> float:
    """Return the exact error in percent on the counter-example."""
    assert COUNTER_EXAMPLE.p is not None
    return (
        100
        * recovery(
            COUNTER_EXAMPLE.circuit,
            ProductDistribution(np.array(COUNTER_EXAMPLE.p)),
            circuit_of(gates, 4),
        ).error
    )


def _same_sample(
    family: Family, margin: float, sample: int, limit: int, printed_sign: bool = False
) -> Comparison:
    n = family.dimension
    settings: dict[str, Any] = {"margin": margin, "k": NEURONS, "precision": 64}
    learners = {
        "network": layerwise_network(n, **settings, steps=limit, printed_sign=printed_sign),
        "counts": Layerwise(**settings, limit=limit),
        "weights": Layerwise(**settings, limit=limit, source="weighted sample"),
    }

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        gates = {
            name: circuit_of(record.value("gates"), n).gates for name, record in records.items()
        }
        differing = [np.sum(gates["counts"] != gates[name]) for name in ("network", "weights")]
        return {
            "different": float(sum(differing)),
            "unsettled": 1 - records["counts"].value("settled"),
        }

    return Comparison(
        {name: Arm(family, learner, sample, (Gates(),)) for name, learner in learners.items()},
        measure,
    )
