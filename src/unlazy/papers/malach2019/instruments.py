"""Circuits and laws as they are claimed to be: enumeration beside recursion, lemmas beside exact numbers.

Reference: malach2019, Sections 3–5.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.trials import Instrument
from unlazy.tasks.circuits.bits import unpack
from unlazy.tasks.circuits.circuit import NAMES, TABLE, Circuit, every_input
from unlazy.tasks.circuits.correlation import correlations, influences, simplified
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.laws import GenerativeLaw, ProductLaw, WeightedSample, draw
from unlazy.theory.local_properties import check_properties

#: Rounding of products and sums of some hundred doubles stays far below.
EXACT = 1e-12


class OverSizes(Instrument):
    """An experiment on circuits of several sizes: the axis is the number n of inputs.

    What `WORST` names is accumulated over the sizes up to n, so that its last value speaks for all.
    """

    WORST: ClassVar[dict[str, np.ufunc]] = {}

    sizes: tuple[int, ...] = eqx.field(static=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    @property
    def steps(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def work(self) -> float:
        """A guess from the greatest size."""
        return 1e8 * len(self.sizes)

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
    """Random circuits of all sixteen gates: packed evaluation, exact c and exact influences against all 2^n inputs.

    `evaluation_errors`: values of nodes that differ. `correlation_gap`, `influence_gap`: greatest difference. `print_errors`: circuits that
    are not read back as they were written.
    """

    circuits: int = eqx.field(static=True, default=5, kw_only=True)

    WORST: ClassVar = {
        "evaluation_errors": np.add,
        "print_errors": np.add,
        "correlation_gap": np.maximum,
        "influence_gap": np.maximum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        found = {"evaluation_errors": 0.0, "print_errors": 0.0, "correlation_gap": 0.0, "influence_gap": 0.0}
        x = all_inputs(n)
        for _ in range(self.circuits):
            circuit, p = random_circuit(n, rng, NAMES), rng.uniform(0.05, 0.95, n)
            nodes = plain_evaluation(circuit, x)
            packed = circuit.evaluate(every_input(n))
            found["evaluation_errors"] += sum(np.sum(unpack(a, len(x)) != b) for a, b in zip(packed, nodes, strict=True))
            found["print_errors"] += Circuit.parse(str(circuit)) != circuit
            weights = np.prod(np.where(x, p, 1 - p), axis=1)
            y = 2 * nodes[0][:, 0] - 1
            by_hand = [weights * y @ (2 * level - 1) for level in nodes]
            exact = correlations(circuit, ProductLaw(p)).c
            found["correlation_gap"] = max(found["correlation_gap"], _apart(by_hand, exact))
            found["influence_gap"] = max(found["influence_gap"], _apart(enumerated_influences(circuit), influences(circuit)))
        return found


def enumerated_influences(circuit: Circuit) -> list[np.ndarray]:
    """Influences by flipping every node for all values of its level."""
    found = [np.ones(1)]
    for i in range(1, circuit.depth + 1):
        above = Circuit(circuit.gates[: 2**i - 1])
        output = plain_evaluation(above, all_inputs(2**i))[0][:, 0]
        number = np.arange(2 ** (2**i))
        found.append(np.array([np.mean(output != output[number ^ (1 << (2**i - 1 - j))]) for j in range(2**i)]))
    return found


def _apart(one: list[np.ndarray], two: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True))


class ParityConstruction(OverSizes):
    """Lemma 5: parity of log₂ n random bits as a circuit, with projection gates and as printed, under a product law with P(x = 1) = p.

    `label_errors`: labels of either circuit that are not the product of signs, in a sample. `gap` = Δ with projections over the closed form
    |2p−1|^{k−1}·(1 − |2p−1|); `printed_gap` = Δ of the printed construction. `frequency_z`: greatest standardised error of a sampled mean.
    """

    p: float = eqx.field(converter=float, default=0.75, kw_only=True)
    sample: int = eqx.field(static=True, default=20_000, kw_only=True)

    WORST: ClassVar = {"label_errors": np.add, "printed_gap": np.maximum, "frequency_z": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        k = n.bit_length() - 1
        relevant, law = rng.choice(n, k, replace=False), ProductLaw(np.full(n, self.p))
        circuits = [parity_circuit(n, relevant.tolist(), printed=printed) for printed in (False, True)]
        batch = draw(circuits[0], law, self.sample, rng)
        x = unpack(batch.x, self.sample)
        label = np.prod(np.where(x[:, relevant], 1, -1), axis=1) > 0
        wrong = sum(int(np.sum(unpack(c.output(batch.x)[None], self.sample)[:, 0] != label)) for c in circuits)
        z = np.abs(x.mean(axis=0) - self.p) / np.sqrt(self.p * (1 - self.p) / self.sample)
        bias = abs(2 * self.p - 1)
        gap, printed = (correlations(c, law).margin for c in circuits)
        return {
            "label_errors": wrong,
            "gap": gap / (bias ** (k - 1) * (1 - bias)),
            "printed_gap": printed,
            "frequency_z": z.max(),
        }


def generative_masses(circuit: Circuit) -> np.ndarray:
    """P(x) of every input under the generative law with balanced labels: a product of 1/|patterns| over the gates."""
    nodes = plain_evaluation(circuit, all_inputs(circuit.n))
    mass = np.full(len(nodes[0]), 0.5)
    for gates, values in zip(circuit.levels, nodes, strict=False):
        ones = TABLE[gates].sum(axis=1)
        mass = mass * np.prod(1 / np.where(values == 1, ones, 4 - ones), axis=1)
    return mass


class PushForward(OverSizes):
    """Lemma 9 by enumeration. `distance`: total variation between Γ_i(D⁽ⁱ⁾) and D⁽ⁱ⁻¹⁾, the worst level. `chi_square`: χ² per degree of
    freedom between `sample` drawn inputs and their exact probabilities.
    """

    sample: int = eqx.field(static=True, default=200_000, kw_only=True)

    WORST: ClassVar = {"distance": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        circuit = random_circuit(n, rng)
        worst = 0.0
        for i in range(2, circuit.depth + 1):
            lower, upper = Circuit(circuit.gates[: 2**i - 1]), Circuit(circuit.gates[: 2 ** (i - 1) - 1])
            mass = generative_masses(lower)
            place = plain_evaluation(lower, all_inputs(2**i))[i - 1] @ (1 << np.arange(2 ** (i - 1))[::-1])
            pushed = np.bincount(place, mass, 2 ** (2 ** (i - 1)))
            worst = max(worst, float(np.abs(pushed - generative_masses(upper)).sum()) / 2)
        expected = generative_masses(circuit) * self.sample
        x = unpack(GenerativeLaw(circuit).draw(self.sample, rng), self.sample)
        counted = np.bincount(x @ (1 << np.arange(n)[::-1]), minlength=2**n)
        seen = expected > 0
        chi = np.sum((counted[seen] - expected[seen]) ** 2 / expected[seen]) / max(1, seen.sum() - 1)
        return {"distance": worst, "chi_square": chi}


class LocalCorrelation(OverSizes):
    """Lemma 3 and the checker, on random circuits under random product laws whose gates of influence zero are set to TRUE.

    `with_lca`: how many satisfy LCA. `broken`: how many of them break a property. `epsilon_ratio`: least ε/(Δ²/4) of them, where Δ is
    also a lower bound of the inputs' probabilities. `checker_gap`: difference of Δ and ε to enumeration.
    """

    circuits: int = eqx.field(static=True, default=200, kw_only=True)

    WORST: ClassVar = {"broken": np.add, "epsilon_ratio": np.minimum, "checker_gap": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        found = {"with_lca": 0.0, "broken": 0.0, "epsilon_ratio": 1e3, "checker_gap": 0.0}
        x = all_inputs(n)
        for index in range(self.circuits):
            circuit, p = simplified(random_circuit(n, rng, NAMES)), rng.uniform(0.1, 0.9, n)
            law = ProductLaw(p)
            known = correlations(circuit, law)
            if not np.isfinite(known.margin):
                continue
            if index < 5:
                y = plain_evaluation(circuit, x)[0][:, 0] > 0
                counted = correlations(circuit, WeightedSample(x, y, np.prod(np.where(x, p, 1 - p), axis=1)))
                apart = max(abs(counted.margin - known.margin), abs(counted.epsilon - known.epsilon))
                found["checker_gap"] = max(found["checker_gap"], apart)
            if known.margin <= EXACT:
                continue
            found["with_lca"] += 1
            answers = check_properties(circuit, law)
            found["broken"] += any(answer.answer != "holds" for answer in answers.values())
            delta = min(known.margin, p.min(), 1 - p.max())
            found["epsilon_ratio"] = min(found["epsilon_ratio"], known.epsilon / (delta**2 / 4))
        return found


class ParityMargin(OverSizes):
    """Lemma 6 on random product laws with p_j ∈ (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ), parity of k = log₂ n bits.

    `gap_ratio`: least (|c_ij| − |E y|) / (2ξ)^k over influencing nodes. `inside`: least distance of P(z_ij = 1) to the ends of (ξ, 1 − ξ).
    """

    xi: float = eqx.field(converter=float, default=0.1, kw_only=True)
    laws: int = eqx.field(static=True, default=50, kw_only=True)

    WORST: ClassVar = {"gap_ratio": np.minimum, "inside": np.minimum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        k, xi = n.bit_length() - 1, self.xi
        ratio, inside = np.inf, np.inf
        for _ in range(self.laws):
            low = rng.uniform(xi, 0.5 - xi, n)
            p = np.where(rng.random(n) < 0.5, low, 1 - low)
            circuit, law = parity_circuit(n, rng.choice(n, k, replace=False).tolist()), ProductLaw(p)
            known = correlations(circuit, law)
            ratio = min(ratio, known.margin / (2 * xi) ** k)
            q = _marginals(circuit, p)
            used = [level[i > 0] for level, i in zip(q, known.influence, strict=True)]
            inside = min(inside, min(float(np.minimum(level - xi, 1 - xi - level).min()) for level in used))
        return {"gap_ratio": ratio, "inside": inside}


def _marginals(circuit: Circuit, p: np.ndarray) -> list[np.ndarray]:
    """P(node = 1) on levels 0 … d for independent inputs."""
    levels = [p]
    for gates in reversed(circuit.levels):
        left, right = (np.stack([1 - side, side], 1) for side in (levels[-1][0::2], levels[-1][1::2]))
        levels.append(np.einsum("ga,gb,gab->g", left, right, TABLE[gates].reshape(-1, 2, 2)))
    return levels[::-1]


class GenerativeMargin(OverSizes):
    """Lemma 8 on random AND/OR/NAND/NOR circuits. `gap`: greatest | |c_ij| − (2/3)^i |. `printed_least`: the least P(x_j = 1 | y = 1) by
    the recursion as printed (AND: 2p/3 − 1/3), which leaves |c_ij| as it is but gives probabilities below zero.
    """

    circuits: int = eqx.field(static=True, default=10, kw_only=True)

    WORST: ClassVar = {"gap": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        gap, printed = 0.0, 1.0
        for _ in range(self.circuits):
            circuit = random_circuit(n, rng)
            c = correlations(circuit, GenerativeLaw(circuit)).c
            gap = max(gap, max(float(np.abs(np.abs(level) - (2 / 3) ** i).max()) for i, level in enumerate(c)))
            printed = min(printed, _printed_recursion(circuit))
        return {"gap": gap, "printed_least": printed}


def _printed_recursion(circuit: Circuit) -> float:
    """The least P(x_j = 1 | y = 1) that the recursion in the proof of Lemma 8 gives as printed."""
    slope = {"AND": (2 / 3, -1 / 3), "OR": (2 / 3, 0.0), "NAND": (-2 / 3, 1.0), "NOR": (-2 / 3, 2 / 3)}
    p, least = np.ones(1), 1.0
    for gates in circuit.levels:
        a, b = np.array([slope[NAMES[gate]] for gate in gates]).T
        p = np.repeat(a * p + b, 2)
        least = min(least, float(p.min()))
    return least
