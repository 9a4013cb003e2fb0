"""Layerwise learning of circuits: what is recovered, from how many examples, in how many steps, and where it fails.

Reference: malach2019, Theorems 2 and 4, Sections 4.1 and 5.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.trials import Instrument
from unlazy.learners.circuits.layerwise import LearnedCircuit, learn_circuit, sample_statistics
from unlazy.learners.circuits.neural_gates import Rate
from unlazy.learners.circuits.tree import layerwise_network
from unlazy.networks.tree import initial_tree, width_for
from unlazy.papers.malach2019.instruments import OverSizes, all_inputs
from unlazy.tasks.base import Batch, Sampler
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.laws import GenerativeLaw, Law, ProductLaw, WeightedSample, draw, signs
from unlazy.tasks.circuits.recovery import LawStatistics, Recovery, SampleLawStatistics, recovery

Kind = Literal["generative", "parity", "uniform parity"]
#: P(x_j = 1) of the biased parities.
BIAS = 0.75
#: δ that sets the width of the gates.
DELTA = 0.001


def random_target(kind: Kind, n: int, rng: np.random.Generator) -> tuple[Circuit, Law]:
    """A random circuit and its law: AND/OR/NAND/NOR gates under the generative law, or a parity of log₂ n bits on independent bits."""
    if kind == "generative":
        circuit = random_circuit(n, rng)
        return circuit, GenerativeLaw(circuit)
    p = 0.5 if kind == "uniform parity" else BIAS
    return parity_circuit(n, rng.choice(n, n.bit_length() - 1, replace=False).tolist()), ProductLaw(np.full(n, p))


def learn(
    circuit: Circuit, law: Law, sample: int | None, rng: np.random.Generator, *, key: PRNGKeyArray, rate: Rate = "scaled"
) -> tuple[LearnedCircuit, Recovery]:
    """Algorithm 1 on `sample` examples, or on the law itself where it is None, and what it recovered."""
    # Where there is no local correlation Δ is not positive; λ then only has to be above E y.
    margin = max(correlations(circuit, law).margin, 0.01)
    statistics = LawStatistics(circuit, law) if sample is None else sample_statistics(draw(circuit, law, sample, rng))
    tree = initial_tree(circuit.n, width_for(circuit.n, DELTA), key=key)
    found = learn_circuit(statistics, tree, margin=margin, rate=rate)
    return found, recovery(circuit, law, found.circuit)


def sample_for(kind: Kind, n: int) -> int:
    """Examples that are enough for exact recovery: about 256/Δ², rounded up to a power of two."""
    d = n.bit_length() - 1
    margin = (2 / 3) ** d if kind == "generative" else abs(2 * BIAS - 1) ** (d - 1) * (1 - abs(2 * BIAS - 1))
    return 2 ** math.ceil(math.log2(256 / margin**2))


def theorem_sample(epsilon: float, margin: float, n: int, delta: float = 0.05) -> float:
    """|S| > 2¹¹/(ε²Δ²)·log(8nd/δ) of Theorem 4."""
    return 2**11 / (epsilon * margin) ** 2 * math.log(8 * n * (n.bit_length() - 1) / delta)


def theorem_steps(epsilon: float, margin: float, n: int, rate: float) -> float:
    """T > 6n/(√2·η·ε·Δ) of Theorem 4, for each layer."""
    return 6 * n / (math.sqrt(2) * rate * epsilon * margin)


class RecoverySweep(OverSizes):
    """Algorithm 1 on one random circuit of each size.

    `recovered`: share in percent of influencing gates recovered; `error`: exact error in percent. `worst_recovered` and `worst_error` run
    over all sizes up to n. `steps`: of all layers together. `sample`, `theorem_sample`: examples used, and those that Theorem 4 asks for.
    """

    kind: Kind = eqx.field(static=True, kw_only=True)
    population: bool = eqx.field(static=True, kw_only=True)
    rate: Rate = eqx.field(static=True, default="scaled", kw_only=True)

    @property
    def work(self) -> float:
        """Drawing and training."""
        return sum(1e9 + (0.0 if self.population else 50.0 * n * sample_for(self.kind, n)) for n in self.sizes)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure all sizes."""
        rng, rows = host_generator(key), []
        for n in self.sizes:
            circuit, law = random_target(self.kind, n, rng)
            sample = None if self.population else sample_for(self.kind, n)
            found, seen = learn(circuit, law, sample, rng, key=jax.random.fold_in(key, n), rate=self.rate)
            known, k = correlations(circuit, law), width_for(n, DELTA)
            margin, epsilon = max(known.margin, 1e-3), known.epsilon
            rows.append(
                {
                    "recovered": 100 * seen.share,
                    "error": 100 * seen.error,
                    "settled": float(found.settled),
                    "steps": float(max(found.steps)),
                    "theorem_steps": theorem_steps(epsilon, margin, n, 1 / (16 * math.sqrt(2) * k)),
                    "sample": float(sample or 0),
                    "theorem_sample": theorem_sample(epsilon, margin, n),
                }
            )
        table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        table["worst_recovered"] = np.minimum.accumulate(table["recovered"])
        table["worst_error"] = np.maximum.accumulate(table["error"])
        return table


class LeastSample(OverSizes):
    """The least power of two of examples with which at least nine of `tries` circuits are recovered exactly.

    `least`: that number. `prediction` = 1/Δ². `exponent`: slope of log(least) over log n for all sizes up to n (0 for the first).
    `orders_below_theorem`: by how many powers of ten Theorem 4 asks for more.
    """

    kind: Kind = eqx.field(static=True, kw_only=True)
    tries: int = eqx.field(static=True, default=10, kw_only=True)

    @property
    def work(self) -> float:
        """Some doublings of ten circuits for each size."""
        return sum(1e9 * self.tries + 100.0 * self.tries * n * sample_for(self.kind, n) for n in self.sizes)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure all sizes."""
        rng = host_generator(key)
        least, theorem, prediction = [], [], []
        for n in self.sizes:
            sample = 16
            while not self._enough(n, sample, rng, jax.random.fold_in(key, n)) and sample < 64 * sample_for(self.kind, n):
                sample *= 2
            known = correlations(*random_target(self.kind, n, rng))
            least.append(float(sample))
            theorem.append(theorem_sample(known.epsilon, known.margin, n))
            prediction.append(1 / known.margin**2)
        slopes = [0.0, *(float(np.polyfit(np.log(self.sizes[:i]), np.log(least[:i]), 1)[0]) for i in range(2, len(least) + 1))]
        return {
            "least": np.array(least),
            "theorem": np.array(theorem),
            "orders_below_theorem": np.log10(np.array(theorem) / np.array(least)),
            "prediction": np.array(prediction),
            "exponent": np.array(slopes),
        }

    def _enough(self, n: int, sample: int, rng: np.random.Generator, key: PRNGKeyArray) -> bool:
        """Whether nine of ten circuits are recovered exactly; it ends at the failure that is one too many."""
        failures = 0
        for index in range(self.tries):
            _, seen = learn(*random_target(self.kind, n, rng), sample, rng, key=jax.random.fold_in(key, index))
            failures += not seen.exact
            if failures > 0.1 * self.tries:
                return False
        return True


def one_uncorrelated_gate(correlated: bool) -> tuple[Circuit, Law]:
    """The parity of four independent bits with P(x_j = 1) = 0.85.

    Unless `correlated`, x1 is fair: then the gate on x1, x2 is fair, and the gate on x3, x4 alone has no correlation with the label.
    """
    return Circuit.parse("XNOR / XNOR XNOR"), ProductLaw(np.array([0.85 if correlated else 0.5, 0.85, 0.85, 0.85]))


class Uncorrelated(Instrument):
    """Where an influencing gate has no correlation with the label, in percent: the exact error and the gates recovered.

    `uniform_*`: parity of log₂ n fair bits; `gate_*`: a circuit with one such gate; `contrast_*`: the same circuit with a biased bit, so
    that all gates are correlated. `gap`, `contrast_gap`: Δ. Each on the law itself and on `sample` examples (`…_sample`).
    """

    n: int = eqx.field(static=True)
    sample: int = eqx.field(static=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    @property
    def work(self) -> float:
        """Six small circuits."""
        return 1e10

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure."""
        rng = host_generator(key)
        targets = {
            "uniform": random_target("uniform parity", self.n, rng),
            "gate": one_uncorrelated_gate(False),
            "contrast": one_uncorrelated_gate(True),
        }
        found: dict[str, Any] = {}
        for name, (circuit, law) in targets.items():
            found[f"{name}_gap"] = correlations(circuit, law).margin
            for index, (suffix, sample) in enumerate((("", None), ("_sample", self.sample))):
                _, seen = learn(circuit, law, sample, rng, key=jax.random.fold_in(key, index))
                found[f"{name}_error{suffix}"], found[f"{name}_recovered{suffix}"] = 100 * seen.error, 100 * seen.share
        return {name: np.asarray(float(value)) for name, value in found.items()}


#: OR(x1, x3) with P(x1 = 1) = 0.3 and P(x3 = 1) = 0.4 satisfies the local correlation assumption with Δ = 0.28.
COUNTER_EXAMPLE = (Circuit.parse("OR / LEFT LEFT"), ProductLaw(np.array([0.3, 0.5, 0.4, 0.5])))


@functools.cache
def _literal(n: int, margin: float, steps: int, k: int, printed: bool) -> Any:
    learner = layerwise_network(n, margin=margin, steps=steps, k=k, printed_sign=printed)

    def fit(x: Any, y: Any, key: Any) -> Any:
        # The learner draws once, the sample that is given.
        return learner.fit(Sampler(lambda count, key: Batch(x, y), n), len(y), key=key).at(0)

    return jax.jit(fit)


class ThreeLevels(Instrument):
    """Algorithm 1 on the same samples by the literal network, by gate statistics and by the sample as a law.

    `different`: gates that differ between any two of them, over `circuits` samples of generative circuits with n inputs; `unsettled`:
    samples on which an output was not ±1 in the end. `error`, `printed_error`: exact error in percent on a law that satisfies the
    assumptions, with the regulariser of the proofs and with the printed one; by the literal network too (`literal_…`).
    """

    n: int = eqx.field(static=True)
    sample: int = eqx.field(static=True)
    circuits: int = eqx.field(static=True, default=2, kw_only=True)
    limit: int = eqx.field(static=True, default=4_000, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    @property
    def work(self) -> float:
        """The literal network costs most."""
        return 1e4 * self.circuits * self.n * self.sample * 32

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Measure."""
        rng, k = host_generator(key), 32
        different = unsettled = 0
        margin = (2 / 3) ** (self.n.bit_length() - 1)
        for index in range(self.circuits):
            circuit, law = random_target("generative", self.n, rng)
            batch, at = draw(circuit, law, self.sample, rng), jax.random.fold_in(key, index)
            x, y = (np.asarray(part, float) for part in signs(batch))
            tree = initial_tree(self.n, k, key=jax.random.split(at, 3)[0])
            by_sample = learn_circuit(sample_statistics(batch), tree, margin=margin, limit=self.limit)
            by_law = learn_circuit(SampleLawStatistics(WeightedSample.of(x, y)), tree, margin=margin, limit=self.limit)
            literal = _literal(self.n, margin, self.limit, k, False)(x, y, at).circuit
            for one, two in ((by_sample.circuit, by_law.circuit), (by_sample.circuit, literal)):
                different += int(np.sum(one.gates != two.gates))
            unsettled += not by_sample.settled
        found = {"different": different, "unsettled": unsettled, **self._signs(key, k)}
        return {name: np.asarray(float(value)) for name, value in found.items()}

    def _signs(self, key: PRNGKeyArray, k: int) -> dict[str, float]:
        """The counter-example to the printed regulariser."""
        circuit, law = COUNTER_EXAMPLE
        margin = correlations(circuit, law).margin
        # Each input as often as it occurs in 200 examples: a sample that is the law itself, without noise.
        every = all_inputs(4)
        often = np.rint(200 * np.prod(np.where(every, law.p, 1 - law.p), axis=1)).astype(int)
        x = np.where(np.repeat(every, often, axis=0), 1.0, -1.0)
        y = np.where((x[:, 0] > 0) | (x[:, 2] > 0), 1.0, -1.0)
        found = {}
        for name, printed in (("", False), ("printed_", True)):
            tree = initial_tree(4, k, key=jax.random.split(key, 3)[0])
            by_law = learn_circuit(LawStatistics(circuit, law), tree, margin=margin, printed_sign=printed)
            literal = _literal(4, margin, self.limit, k, printed)(x, y, key).circuit
            found[f"{name}error"] = 100 * recovery(circuit, law, by_law.circuit).error
            found[f"literal_{name}error"] = 100 * recovery(circuit, law, literal).error
        return found
