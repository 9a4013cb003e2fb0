"""Circuits and laws as they are claimed to be: enumeration beside recursion, lemmas beside exact
numbers.

Reference: malach2019, Sections 3–5.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.trials import ExactComputation
from unlazy.tasks.circuits.bits import pack, unpack
from unlazy.tasks.circuits.circuit import GATES, NAMES, TABLE, Circuit, every_input
from unlazy.tasks.circuits.correlation import correlations, influences, simplified
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    InputDistribution,
    MixtureDistribution,
    ProductDistribution,
    WeightedSample,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.families import LISTED
from unlazy.theory.local_properties import check_properties

#: Rounding of products and sums of some hundred doubles stays far below.
EXACT = 1e-12


class OverSizes(ExactComputation):
    """An experiment on circuits of several sizes: the axis is the number n of inputs.

    What `WORST` names is accumulated over the sizes up to n, so that its last value speaks for all.
    """

    WORST: ClassVar[dict[str, np.ufunc]] = {}

    sizes: tuple[int, ...] = eqx.field(static=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    axis = "sizes"

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Measure one size."""
        raise NotImplementedError

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        found = [self.at(n, rng) for n in self.sizes]
        table = {name: np.array([row[name] for row in found], float) for name in found[0]}
        return table | {name: rule.accumulate(table[name]) for name, rule in self.WORST.items()}


def all_inputs(n: int) -> np.ndarray:
    """All inputs as Booleans, one a row."""
    return unpack(every_input(n), 2**n)


def plain_evaluation(circuit: Circuit, x: np.ndarray) -> list[np.ndarray]:
    """All nodes by table look-up, one byte a bit: level 0 first."""
    nodes = [x.astype(int)]
    for level in reversed(circuit.levels):
        nodes.append(TABLE[level[None], 2 * nodes[-1][:, 0::2] + nodes[-1][:, 1::2]])
    return nodes[::-1]


class Enumeration(OverSizes):
    """Random circuits of all sixteen gates: packed evaluation, exact c and exact influences against
    all 2^n inputs.

    `evaluation_errors`: values of nodes that differ. `correlation_gap`, `influence_gap`: greatest
    difference. `print_errors`: circuits that are not read back as they were written. `other` holds
    the enumeration of another circuit, with negated output and bottom gates, against them: then
    nothing agrees.
    """

    circuits: int = eqx.field(static=True, default=5, kw_only=True)
    other: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {
        "evaluation_errors": np.add,
        "print_errors": np.add,
        "correlation_gap": np.maximum,
        "influence_gap": np.maximum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        found = {
            "evaluation_errors": 0.0,
            "print_errors": 0.0,
            "correlation_gap": 0.0,
            "influence_gap": 0.0,
        }
        x = all_inputs(n)
        for _ in range(self.circuits):
            circuit, p = random_circuit(n, rng, NAMES), rng.uniform(0.05, 0.95, n)
            listed = _other(circuit) if self.other else circuit
            nodes = plain_evaluation(listed, x)
            packed = circuit.evaluate(every_input(n))
            found["evaluation_errors"] += sum(
                np.sum(unpack(a, len(x)) != b) for a, b in zip(packed, nodes, strict=True)
            )
            found["print_errors"] += Circuit.parse(str(circuit)) != listed
            weights = np.prod(np.where(x, p, 1 - p), axis=1)
            y = 2 * nodes[0][:, 0] - 1
            by_hand = [weights * y @ (2 * level - 1) for level in nodes]
            exact = correlations(circuit, ProductDistribution(p)).c
            found["correlation_gap"] = max(found["correlation_gap"], _apart(by_hand, exact))
            found["influence_gap"] = max(
                found["influence_gap"], _apart(enumerated_influences(listed), influences(circuit))
            )
        return found


def enumerated_influences(circuit: Circuit) -> list[np.ndarray]:
    """Influences by flipping every node for all values of its level."""
    found = [np.ones(1)]
    for i in range(1, circuit.depth + 1):
        above = Circuit(circuit.gates[: 2**i - 1])
        output = plain_evaluation(above, all_inputs(2**i))[0][:, 0]
        number = np.arange(2 ** (2**i))
        found.append(
            np.array(
                [np.mean(output != output[number ^ (1 << (2**i - 1 - j))]) for j in range(2**i)]
            )
        )
    return found


def _other(circuit: Circuit) -> Circuit:
    """Another circuit: every gate of the upper levels is followed by the next kind."""
    gates = circuit.gates.copy()
    gates[: max(1, circuit.n // 2 - 1)] = (gates[: max(1, circuit.n // 2 - 1)] + 1) % 16
    return Circuit(gates)


def _apart(one: list[np.ndarray], two: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True))


class ParityConstruction(OverSizes):
    """Lemma 5: the circuit that is printed for the parity of log₂ n random bits, on inputs with P(x
    = 1) = p.

    `label_errors`: outputs that are not the product of the signs, among all inputs up to n = 16 and
    in a sample above. `frequency_z`: greatest standardised error of a sampled mean against
    `stated`. `gate` takes the place of the product in the upper levels.
    """

    p: float = eqx.field(converter=float, default=0.75, kw_only=True)
    stated: float = eqx.field(converter=float, default=0.75, kw_only=True)
    gate: str = eqx.field(static=True, default="XNOR", kw_only=True)
    sample: int = eqx.field(static=True, default=20_000, kw_only=True)

    WORST: ClassVar = {"label_errors": np.add, "frequency_z": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        k = n.bit_length() - 1
        relevant, distribution = (
            rng.choice(n, k, replace=False),
            ProductDistribution(np.full(n, self.p)),
        )
        circuit = parity_circuit(n, relevant.tolist(), printed=True)
        upper = n // 2 - 1
        circuit = Circuit(
            np.concatenate([np.full(upper, GATES[self.gate], np.uint8), circuit.gates[upper:]])
        )
        drawn = unpack(distribution.draw(self.sample, rng), self.sample)
        x = all_inputs(n) if n <= LISTED else drawn
        label = np.prod(np.where(x[:, relevant], 1, -1), axis=1) > 0
        wrong = int(np.sum(unpack(circuit.output(pack(x))[None], len(x))[:, 0] != label))
        z = np.abs(drawn.mean(axis=0) - self.stated) / np.sqrt(
            self.stated * (1 - self.stated) / self.sample
        )
        return {"label_errors": wrong, "frequency_z": z.max()}


def generative_masses(circuit: Circuit) -> np.ndarray:
    """P(x) of every input under the generative law with balanced labels: a product of 1/|patterns|
    over the gates.
    """
    nodes = plain_evaluation(circuit, all_inputs(circuit.n))
    mass = np.full(len(nodes[0]), 0.5)
    for gates, values in zip(circuit.levels, nodes, strict=False):
        ones = TABLE[gates].sum(axis=1)
        mass = mass * np.prod(1 / np.where(values == 1, ones, 4 - ones), axis=1)
    return mass


def printed_masses(circuit: Circuit) -> np.ndarray:
    """P(x) of every input under the recursion as printed, where both values of a gate draw from the
    patterns that give +1.
    """
    gates = circuit.levels[-1]
    values = plain_evaluation(circuit, all_inputs(circuit.n))[circuit.depth - 1]
    result: np.ndarray = np.prod(
        np.where(values == 1, 1 / np.maximum(1, TABLE[gates].sum(axis=1)), 0.0), axis=1
    )
    return result


class PushForward(OverSizes):
    """Lemma 9 by enumeration. `distance`: total variation between Γ_i(D⁽ⁱ⁾) and D⁽ⁱ⁻¹⁾, the worst
    level. `chi_square`: χ² per degree of freedom between `sample` drawn inputs and their exact
    probabilities. `printed` takes the law as the text prints it.
    """

    sample: int = eqx.field(static=True, default=200_000, kw_only=True)
    printed: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {"distance": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        circuit, masses = (
            random_circuit(n, rng),
            printed_masses if self.printed else generative_masses,
        )
        worst = 0.0
        for i in range(2, circuit.depth + 1):
            lower, upper = (
                Circuit(circuit.gates[: 2**i - 1]),
                Circuit(circuit.gates[: 2 ** (i - 1) - 1]),
            )
            mass = masses(lower)
            place = plain_evaluation(lower, all_inputs(2**i))[i - 1] @ (
                1 << np.arange(2 ** (i - 1))[::-1]
            )
            pushed = np.bincount(place, mass, 2 ** (2 ** (i - 1)))
            worst = max(worst, float(np.abs(pushed - masses(upper)).sum()) / 2)
        expected = masses(circuit) * self.sample
        x = unpack(GenerativeDistribution(circuit).draw(self.sample, rng), self.sample)
        counted = np.bincount(x @ (1 << np.arange(n)[::-1]), minlength=2**n)
        seen = expected > 0
        chi = np.sum((counted[seen] - expected[seen]) ** 2 / expected[seen]) / max(
            1, seen.sum() - 1
        )
        return {"distance": worst, "chi_square": chi}


class LocalCorrelation(OverSizes):
    """Lemma 3 and the checker, on random circuits under random product laws whose gates of
    influence zero are set to TRUE.

    `with_lca`: how many satisfy LCA with some Δ, which is also to bound the probabilities of the
    inputs (Definition 1). `broken`: how many of them break a property. `rare`: how many of them
    have a pattern rarer than Δ²/4. `tightest`: least ε/(Δ²/4). `checker_gap`: difference of Δ and ε
    to enumeration. `dependent` breaks the conditions: laws are mixtures of two product laws, so
    that inputs are not independent, Δ does not bound their probabilities, and the enumeration is
    that of one part alone.
    """

    circuits: int = eqx.field(static=True, default=200, kw_only=True)
    dependent: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {
        "with_lca": np.add,
        "broken": np.add,
        "rare": np.add,
        "tightest": np.minimum,
        "checker_gap": np.maximum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        found = {"with_lca": 0.0, "broken": 0.0, "rare": 0.0, "tightest": 1e3, "checker_gap": 0.0}
        x, counted = all_inputs(n), 0
        for _ in range(self.circuits):
            circuit, distribution, p, delta = self._draw(n, rng)
            known = correlations(circuit, distribution)
            if not np.isfinite(known.margin):
                continue
            if counted < 5:
                counted += 1
                y = plain_evaluation(circuit, x)[0][:, 0] > 0
                listed = correlations(
                    circuit, WeightedSample(x, y, np.prod(np.where(x, p, 1 - p), axis=1))
                )
                apart = max(abs(listed.margin - known.margin), abs(listed.epsilon - known.epsilon))
                found["checker_gap"] = max(found["checker_gap"], apart)
            if known.margin <= EXACT:
                continue
            found["with_lca"] += 1
            answers = check_properties(circuit, distribution)
            found["broken"] += any(answer.answer != "holds" for answer in answers.values())
            ratio = known.epsilon / (min(known.margin, delta) ** 2 / 4)
            found["rare"] += ratio < 1
            found["tightest"] = min(found["tightest"], ratio)
        return found

    def _draw(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Circuit, InputDistribution, np.ndarray, float]:
        """A circuit, its law, the probabilities of the inputs, and the least of them."""
        circuit = simplified(random_circuit(n, rng, NAMES))
        if not self.dependent:
            p = rng.uniform(0.1, 0.9, n)
            return circuit, ProductDistribution(p), p, min(p.min(), 1 - p.max())
        p, other = rng.uniform(0.001, 0.999, (2, n)) ** 3
        return (
            circuit,
            MixtureDistribution((0.5, 0.5), (ProductDistribution(p), ProductDistribution(other))),
            p,
            1.0,
        )


def marginals(circuit: Circuit, p: np.ndarray) -> list[np.ndarray]:
    """P(node = 1) on levels 0 … d for independent inputs."""
    levels = [p]
    for gates in reversed(circuit.levels):
        left, right = (
            np.stack([1 - side, side], 1) for side in (levels[-1][0::2], levels[-1][1::2])
        )
        levels.append(np.einsum("ga,gb,gab->g", left, right, TABLE[gates].reshape(-1, 2, 2)))
    return levels[::-1]
