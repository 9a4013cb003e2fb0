"""Arms of layerwise learning: what is recovered, from how many examples, in how many steps, and
where it fails.

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
#: δ that sets the width of the gates.
DELTA = 0.001
#: A learner on the law itself takes no examples, but a trial has at least one.
NO_EXAMPLES = 1
#: Sizes of the least sample that are tried, from 1/128 to 1/4 of what is enough.
DOUBLINGS = 6
#: Where none of them is enough, this many times what the theorem asks for stands for the answer, so
#: that checks see it.
NEVER_ENOUGH = 2


def random_circuits(kind: Kind, n: int, *, correlated: bool = True) -> Family:
    """AND/OR/NAND/NOR circuits under the generative law, or parities of log₂ n bits on independent
    biased bits.

    Unless `correlated`, the gates of the former are XOR and XNOR and the bits of the latter fair:
    then no gate tells of the label.
    """
    if kind == "generative":
        return GenerativeCircuits(n) if correlated else GenerativeCircuits(n, gates=("XOR", "XNOR"))
    return BiasedParity(n, n.bit_length() - 1, BIAS if correlated else 0.5)


def margin_of(kind: Kind, n: int) -> float:
    """Δ in closed form: (2/3)^d by Lemma 8, and |2p − 1|^{k−1}·(1 − |2p − 1|) for a parity of k
    bits.
    """
    d = n.bit_length() - 1
    return (2 / 3) ** d if kind == "generative" else parity_margin(BIAS, d)


def epsilon_of(kind: Kind, n: int) -> float:
    """ε in closed form, that of the worst circuit: ¼·(2/3)^d, and (1 − p)² for a parity."""
    return 0.25 * margin_of(kind, n) if kind == "generative" else (1 - BIAS) ** 2


def sample_for(kind: Kind, n: int) -> int:
    """Examples that are enough for exact recovery: about 256/Δ², rounded up to a power of two."""
    return int(2 ** math.ceil(math.log2(256 / margin_of(kind, n) ** 2)))


def layerwise(
    family: Family, margin: float, sample: int | None, rate: Rate = "scaled", **settings: Any
) -> Arm:
    """Algorithm 1 on `sample` examples, or on the law itself where it is None, and what it
    recovered.
    """
    source: Literal["law", "sample"] = "law" if sample is None else "sample"
    learner = Layerwise(
        margin=margin, delta=DELTA, rate=rate, source=source, precision=64, **settings
    )
    return Arm(family, learner, sample or NO_EXAMPLES, (Recovered(),))


def recovery_sweep(
    sizes: tuple[int, ...],
    kind: Kind,
    *,
    population: bool,
    correlated: bool = True,
) -> Row:
    """Algorithm 1 on one random circuit of each size n.

    `worst_recovered` and `worst_error` run over all sizes up to n. `steps`: of the slowest layer.
    `sample`, `theorem_sample`: examples used, and those that Theorem 4 asks for; `theorem_steps`
    likewise.
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


def _worst(places: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        "worst_recovered": np.minimum.accumulate(table["recovered"]),
        "worst_error": np.maximum.accumulate(table["error"]),
    }


def least_sample(sizes: tuple[int, ...], kind: Kind, *, tries: int, correlated: bool = True) -> Row:
    """The least power of two of examples with which at least nine of ten circuits are recovered
    exactly, for each size n.

    `least`: that number among the prefixes of a sample, or `NEVER_ENOUGH` times the theorem's where
    none of them is. `theorem`: what Theorem 4 asks for. `prediction` = 1/Δ². `worst_share`:
    greatest `least` over `theorem` of all sizes up to n.
    """
    return Row({n: _min_sample(n, kind, tries, correlated) for n in sizes}, summaries=(_share,))


def _min_sample(n: int, kind: Kind, tries: int, correlated: bool = True) -> Comparison:
    most = sample_for(kind, n) // 4
    learner = Layerwise(margin=margin_of(kind, n), delta=DELTA, rate="scaled", precision=64)
    sizes = [most >> back for back in reversed(range(DOUBLINGS)) if most >> back >= 16]
    arm = Arm(
        random_circuits(kind, n, correlated=correlated),
        OnPrefixes.of(learner, sizes),
        most,
        (Recovered(),),
    )
    theorem = theorem_sample(epsilon_of(kind, n), margin_of(kind, n), n)

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        runs = records["tries"]
        enough = [
            size
            for size, share in zip(runs.steps, runs.measurements["exact"], strict=True)
            if share >= 0.9 - 1e-9
        ]
        least = float(min(enough, default=NEVER_ENOUGH * theorem))
        return {"least": least, "theorem": theorem, "prediction": 1 / margin_of(kind, n) ** 2}

    return Comparison({"tries": Repeats(arm, tries)}, measure)


def _share(places: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"worst_share": np.maximum.accumulate(table["least"] / table["theorem"])}


#: OR(x1, x3) with P(x1 = 1) = 0.3 and P(x3 = 1) = 0.4 satisfies the local correlation assumption
#: with Δ = 0.28.
COUNTER_EXAMPLE, COUNTER_MARGIN = FixedCircuit("OR / LEFT LEFT", (0.3, 0.5, 0.4, 0.5)), 0.28
#: Neurons of a gate where the literal network is trained.
NEURONS = 32


def three_levels(
    n: int, sample: int, *, circuits: int = 2, limit: int = 4_000, printed_sign: bool = False
) -> Comparison:
    """Algorithm 1 on the same samples by the literal network, by gate statistics and by the sample
    as a law.

    `different`: gates that differ between any two of them, a mean over `circuits` samples of
    generative circuits with n inputs, and on as many samples of a law with unbalanced labels;
    `unsettled`: share of samples on which an output was not ±1 in the end. `error`,
    `literal_error`: exact error in percent on a law that satisfies the assumptions, by gate
    statistics and by the literal network. `printed_sign` gives the literal networks, and the error
    of the gates, the regulariser as it is printed.
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
        found = {
            name: records["samples"].value(name) + records["biased"].value(name)
            for name in ("different", "unsettled")
        }
        literal = _counter_error(records["literal_error"].value("gates"))
        return found | {"error": records["error"].value("error"), "literal_error": literal}

    return Comparison(arms, measure)


def _counter_error(gates: float) -> float:
    """Exact error in percent on the counter-example."""
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
        apart = [np.sum(gates["counts"] != gates[name]) for name in ("network", "weights")]
        return {"different": float(sum(apart)), "unsettled": 1 - records["counts"].value("settled")}

    return Comparison(
        {name: Arm(family, learner, sample, (Gates(),)) for name, learner in learners.items()},
        measure,
    )
