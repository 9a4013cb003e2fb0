"""Arms of layerwise learning: what is recovered, from how many examples, in how many steps, and where it fails.

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
from unlazy.learners.prefixes import OnPrefixes
from unlazy.networks.tree import width_for
from unlazy.papers.malach2019.probes import Gates, Recovered, circuit_of
from unlazy.tasks.base import Family
from unlazy.tasks.circuits.families import BiasedParity, FixedCircuit, GenerativeCircuits
from unlazy.tasks.circuits.laws import ProductLaw
from unlazy.tasks.circuits.recovery import recovery

Kind = Literal["generative", "parity"]
#: P(x_j = 1) of the biased parities.
BIAS = 0.75
#: δ that sets the width of the gates.
DELTA = 0.001
#: Where there is no local correlation Δ is not positive; λ then only has to be above E y.
LEAST_MARGIN = 0.01
#: A learner on the law itself takes no examples, but a trial has at least one.
NO_EXAMPLES = 1
#: Sizes of the least sample that are tried, from 1/128 to 1/4 of what is enough.
DOUBLINGS = 6
#: Where none of them is enough, this many times what should be stands for the answer: far above all of them, so that checks see it.
NEVER_ENOUGH = 64


def random_circuits(kind: Kind, n: int) -> Family:
    """AND/OR/NAND/NOR circuits under the generative law, or parities of log₂ n bits on independent biased bits."""
    return GenerativeCircuits(n) if kind == "generative" else BiasedParity(n, n.bit_length() - 1, BIAS)


def margin_of(kind: Kind, n: int) -> float:
    """Δ in closed form: (2/3)^d by Lemma 8, and |2p − 1|^{k−1}·(1 − |2p − 1|) for a parity of k bits."""
    d = n.bit_length() - 1
    return (2 / 3) ** d if kind == "generative" else parity_margin(BIAS, d)


def parity_margin(p: float, k: int) -> float:
    """Δ of a parity of k bits with P(x_j = 1) = p."""
    return abs(2 * p - 1) ** (k - 1) * (1 - abs(2 * p - 1))


def sample_for(kind: Kind, n: int) -> int:
    """Examples that are enough for exact recovery: about 256/Δ², rounded up to a power of two."""
    return 2 ** math.ceil(math.log2(256 / margin_of(kind, n) ** 2))


def theorem_sample(epsilon: float, margin: float, n: int, delta: float = 0.05) -> float:
    """|S| > 2¹¹/(ε²Δ²)·log(8nd/δ) of Theorem 4."""
    return 2**11 / (epsilon * margin) ** 2 * math.log(8 * n * (n.bit_length() - 1) / delta)


def theorem_steps(epsilon: float, margin: float, n: int, rate: float) -> float:
    """T > 6n/(√2·η·ε·Δ) of Theorem 4, for each layer."""
    return 6 * n / (math.sqrt(2) * rate * epsilon * margin)


def layerwise(family: Family, margin: float, sample: int | None, rate: Rate = "scaled", **settings: Any) -> Arm:
    """Algorithm 1 on `sample` examples, or on the law itself where it is None, and what it recovered."""
    source: Literal["law", "sample"] = "law" if sample is None else "sample"
    learner = Layerwise(margin=margin, delta=DELTA, rate=rate, source=source, precision=64, **settings)
    return Arm(family, learner, sample or NO_EXAMPLES, (Recovered(),))


def recovery_sweep(sizes: tuple[int, ...], kind: Kind, *, population: bool, rate: Rate = "scaled") -> Row:
    """Algorithm 1 on one random circuit of each size n.

    `worst_recovered` and `worst_error` run over all sizes up to n. `steps`: of the slowest layer. `sample`, `theorem_sample`: examples
    used, and those that Theorem 4 asks for; `theorem_steps` likewise.
    """
    samples = {n: None if population else sample_for(kind, n) for n in sizes}
    arms = {n: layerwise(random_circuits(kind, n), margin_of(kind, n), sample, rate) for n, sample in samples.items()}

    def theory(n: int, record: Record) -> dict[str, float]:
        known = record.value("epsilon"), record.value("margin"), n
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


def least_sample(sizes: tuple[int, ...], kind: Kind, *, tries: int) -> Row:
    """The least power of two of examples with which at least nine of ten circuits are recovered exactly, for each size n.

    `least`: that number among the prefixes of a sample, or `NEVER_ENOUGH` times `sample_for` where none of them is. `theorem`: what
    Theorem 4 asks for on the first circuit. `prediction` = 1/Δ². `exponent`: slope of log(least) over log n for all sizes up to n (0 for
    the first). `orders_below_theorem`: by how many powers of ten Theorem 4 asks for more.
    """
    return Row({n: _least_sample(n, kind, tries) for n in sizes}, summaries=(_orders, _exponent))


def _least_sample(n: int, kind: Kind, tries: int) -> Comparison:
    most = sample_for(kind, n) // 4
    learner = Layerwise(margin=margin_of(kind, n), delta=DELTA, rate="scaled", precision=64)
    sizes = [most >> back for back in reversed(range(DOUBLINGS)) if most >> back >= 16]
    arm = Arm(random_circuits(kind, n), OnPrefixes.of(learner, sizes), most, (Recovered(),))

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        runs, one = records["tries"], records["one"]
        enough = [size for size, share in zip(runs.steps, runs.measurements["exact"], strict=True) if share >= 0.9 - 1e-9]
        margin = one.value("margin")
        theorem = theorem_sample(one.value("epsilon"), margin, n)
        return {"least": float(min(enough, default=NEVER_ENOUGH * sample_for(kind, n))), "theorem": theorem, "prediction": 1 / margin**2}

    # The one run is the first of the repeats: its trial is not run twice.
    return Comparison({"tries": Repeats(arm, tries), "one": arm}, measure)


def _orders(places: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"orders_below_theorem": np.log10(table["theorem"] / table["least"])}


def _exponent(places: np.ndarray, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    x, y = np.log(places), np.log(table["least"])
    return {"exponent": np.array([0.0, *(np.polyfit(x[:i], y[:i], 1)[0] for i in range(2, len(x) + 1))])}


def one_uncorrelated_gate(correlated: bool) -> FixedCircuit:
    """The parity of four independent bits with P(x_j = 1) = 0.85.

    Unless `correlated`, x1 is fair: then the gate on x1, x2 is fair, and the gate on x3, x4 alone has no correlation with the label.
    """
    return FixedCircuit("XNOR / XNOR XNOR", (0.85 if correlated else 0.5, 0.85, 0.85, 0.85))


def uncorrelated(n: int, sample: int) -> Comparison:
    """Where an influencing gate has no correlation with the label, in percent: the exact error and the gates recovered.

    `uniform_*`: parity of log₂ n fair bits; `gate_*`: a circuit with one such gate; `contrast_*`: the same circuit with a biased bit, so
    that all gates are correlated. `…_gap`: Δ. Each on the law itself and on `sample` examples (`…_sample`).
    """
    targets: dict[str, tuple[Family, float]] = {
        "uniform": (BiasedParity(n, n.bit_length() - 1, 0.5), LEAST_MARGIN),
        "gate": (one_uncorrelated_gate(False), LEAST_MARGIN),
        "contrast": (one_uncorrelated_gate(True), parity_margin(0.85, 4)),
    }
    sources = {"": None, "_sample": sample}
    arms = {name + suffix: layerwise(*target, count) for name, target in targets.items() for suffix, count in sources.items()}

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        found = {f"{name}_gap": records[name].value("margin") for name in targets}
        for name in targets:
            for suffix in sources:
                found |= {f"{name}_{what}{suffix}": records[name + suffix].value(what) for what in ("error", "recovered")}
        return found

    return Comparison(arms, measure)


#: OR(x1, x3) with P(x1 = 1) = 0.3 and P(x3 = 1) = 0.4 satisfies the local correlation assumption with Δ = 0.28.
COUNTER_EXAMPLE, COUNTER_MARGIN = FixedCircuit("OR / LEFT LEFT", (0.3, 0.5, 0.4, 0.5)), 0.28
#: Neurons of a gate where the literal network is trained.
NEURONS = 32


def three_levels(n: int, sample: int, *, circuits: int = 2, limit: int = 4_000) -> Comparison:
    """Algorithm 1 on the same samples by the literal network, by gate statistics and by the sample as a law.

    `different`: gates that differ between any two of them, a mean over `circuits` samples of generative circuits with n inputs;
    `unsettled`: share of samples on which an output was not ±1 in the end. `error`, `printed_error`: exact error in percent on a law that
    satisfies the assumptions, with the regulariser of the proofs and with the printed one; by the literal network too (`literal_…`).
    """
    arms: dict[str, Any] = {"samples": Repeats(_same_sample(n, sample, limit), circuits)}
    settings: dict[str, Any] = {"margin": COUNTER_MARGIN, "k": NEURONS}
    for name, printed in (("", False), ("printed_", True)):
        arms[f"{name}error"] = layerwise(COUNTER_EXAMPLE, COUNTER_MARGIN, None, "lemma", k=NEURONS, printed_sign=printed)
        network = layerwise_network(4, **settings, steps=limit, printed_sign=printed, law=True, precision=64)
        arms[f"literal_{name}error"] = Arm(COUNTER_EXAMPLE, network, NO_EXAMPLES, (Gates(),))

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        found = {name: records["samples"].value(name) for name in ("different", "unsettled")}
        for name in ("", "printed_"):
            found[f"{name}error"] = records[f"{name}error"].value("error")
            found[f"literal_{name}error"] = _counter_error(records[f"literal_{name}error"].value("gates"))
        return found

    return Comparison(arms, measure)


def _counter_error(gates: float) -> float:
    """Exact error in percent on the counter-example."""
    assert COUNTER_EXAMPLE.p is not None
    return 100 * recovery(COUNTER_EXAMPLE.circuit, ProductLaw(np.array(COUNTER_EXAMPLE.p)), circuit_of(gates, 4)).error


def _same_sample(n: int, sample: int, limit: int) -> Comparison:
    family, margin = GenerativeCircuits(n), (2 / 3) ** (n.bit_length() - 1)
    settings: dict[str, Any] = {"margin": margin, "k": NEURONS, "precision": 64}
    learners = {
        "network": layerwise_network(n, **settings, steps=limit),
        "counts": Layerwise(**settings, limit=limit),
        "weights": Layerwise(**settings, limit=limit, source="weighted sample"),
    }

    def measure(records: Mapping[str, Record]) -> dict[str, float]:
        gates = {name: circuit_of(record.value("gates"), n).gates for name, record in records.items()}
        apart = [np.sum(gates["counts"] != gates[name]) for name in ("network", "weights")]
        return {"different": float(sum(apart)), "unsettled": 1 - records["counts"].value("settled")}

    return Comparison({name: Arm(family, learner, sample, (Gates(),)) for name, learner in learners.items()}, measure)
