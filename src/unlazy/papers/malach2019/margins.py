"""Lemmas 6 and 8 beside exact correlations, with the ε that Corollary 7 and Section 5.2 name; and how many functions trees compute.

Reference: malach2019, Sections 3 and 5.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import Instrument
from unlazy.papers.malach2019.instruments import OverSizes, marginals
from unlazy.tasks.circuits.circuit import MONOTONE_AND_NEGATED, NAMES, TABLE, Circuit
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.families import LISTED
from unlazy.tasks.circuits.laws import GenerativeLaw, ProductLaw

#: How far inside the open intervals of Lemma 6 the laws at their ends lie.
INSIDE = 1e-6


class ParityMargin(OverSizes):
    """Lemma 6 and the ε of Corollary 7 on product laws with p_j ∈ (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ), parity of k = log₂ n bits.

    Half of the laws are drawn from the intervals, half from their ends, where the bounds are tight. `gap_ratio`: least
    (|c_ij| − |E y|) / (2ξ)^k over influencing nodes. `inside`: least distance of P(z_ij = 1) to the ends of (ξ, 1 − ξ). `pattern_ratio`:
    least ε/ξ². `anywhere` draws p_j from the whole of (ξ/10, 1 − ξ/10) instead.
    """

    xi: float = eqx.field(converter=float, default=0.1, kw_only=True)
    laws: int = eqx.field(static=True, default=50, kw_only=True)
    anywhere: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {"gap_ratio": np.minimum, "inside": np.minimum, "pattern_ratio": np.minimum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        k, xi = n.bit_length() - 1, self.xi
        gap = inside = pattern = np.inf
        for index in range(self.laws):
            p = self._draw(n, rng, ends=index % 2 == 1)
            circuit, law = parity_circuit(n, rng.choice(n, k, replace=False).tolist()), ProductLaw(p)
            known = correlations(circuit, law)
            gap, pattern = min(gap, known.margin / (2 * xi) ** k), min(pattern, known.epsilon / xi**2)
            used = [level[i > 0] for level, i in zip(marginals(circuit, p), known.influence, strict=True)]
            inside = min(inside, min(float(np.minimum(level - xi, 1 - xi - level).min()) for level in used))
        return {"gap_ratio": gap, "inside": inside, "pattern_ratio": pattern}

    def _draw(self, n: int, rng: np.random.Generator, *, ends: bool) -> np.ndarray:
        if self.anywhere:
            return rng.uniform(self.xi / 10, 1 - self.xi / 10, n)
        low = rng.uniform(self.xi, 0.5 - self.xi, n)
        if ends:  # one bit in four is as far from ½ as can be, the others as near
            low = np.where(rng.random(n) < 0.25, self.xi + INSIDE, 0.5 - self.xi - INSIDE)
        return np.where(rng.random(n) < 0.5, low, 1 - low)


class GenerativeMargin(OverSizes):
    """Lemma 8 and the ε of Section 5.2 on random circuits under their generative laws; the first has OR gates alone.

    `gap`: greatest | |c_ij| − (2/3)^i |. `least_ratio`: least (|c_ij| − |E y|) / (2/3)^d, over all levels; `strict_ratio`: the same above
    the inputs. `pattern_ratio`: least ε·n²; `closed_form`: least ε over ¼·(2/3)^d. `influence`: least influence of a node, up to n = 16 (above, it
    is too small for a double). `gates` and the share `positive` of labels +1 are those of the text unless given.
    """

    circuits: int = eqx.field(static=True, default=10, kw_only=True)
    gates: tuple[str, ...] = eqx.field(static=True, default=MONOTONE_AND_NEGATED, kw_only=True)
    positive: float = eqx.field(converter=float, default=0.5, kw_only=True)

    WORST: ClassVar = {
        "gap": np.maximum,
        "least_ratio": np.minimum,
        "strict_ratio": np.minimum,
        "pattern_ratio": np.minimum,
        "closed_form": np.minimum,
        "influence": np.minimum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        d, found = n.bit_length() - 1, []
        for index in range(self.circuits):
            circuit = random_circuit(n, rng, ("OR",) if index == 0 and "OR" in self.gates else self.gates)
            known = correlations(circuit, GenerativeLaw(circuit, self.positive))
            above = [np.abs(level) - abs(known.mean_label) for level in known.c]
            found.append(
                {
                    "gap": max(float(np.abs(np.abs(level) - (2 / 3) ** i).max()) for i, level in enumerate(known.c)),
                    "least_ratio": min(float(level.min()) for level in above) / (2 / 3) ** d,
                    "strict_ratio": min(float(level.min()) for level in above[:-1]) / (2 / 3) ** d,
                    "pattern_ratio": known.epsilon * n**2,
                    "closed_form": known.epsilon / (0.25 * (2 / 3) ** d),
                    "influence": min(float(level.min()) for level in known.influence) if n <= LISTED else 1.0,
                }
            )
        return {name: rule.reduce([row[name] for row in found]) for name, rule in self.WORST.items()}


def printed_recursion(circuit: Circuit) -> float:
    """The least P(x_j = 1 | y = 1) that the recursion in the proof of Lemma 8 gives as printed."""
    slope = {"AND": (2 / 3, -1 / 3), "OR": (2 / 3, 0.0), "NAND": (-2 / 3, 1.0), "NOR": (-2 / 3, 2 / 3)}
    p, least = np.ones(1), 1.0
    for gates in circuit.levels:
        a, b = np.array([slope[NAMES[gate]] for gate in gates]).T
        p = np.repeat(a * p + b, 2)
        least = min(least, float(p.min()))
    return least


class CountedFunctions(Instrument):
    """How many functions trees of n = 2, 4, … inputs compute, each counted once, by listing truth tables; the axis is n.

    `count`; `growth`: (log |H_n| − log |H_{n/2}|) / (n/2·log 6), 1 where |H| grows like 6^n (the first size takes the
    next one's); `formula_gap`: distance to 2 + 2(6^n − 1)/5.
    `gates`: those that are allowed.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    gates: tuple[str, ...] = eqx.field(static=True, default=NAMES, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    @property
    def steps(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def work(self) -> float:
        """Tables of the largest size."""
        return 4.0 ** self.sizes[-1]

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        counts = np.array([len(tables_of(n, self.gates)) for n in self.sizes], float)
        rise = np.diff(np.log(counts)) / (np.diff(self.sizes) * np.log(6))
        growth = np.array([rise[0], *rise])
        formula = np.array([2 + 2 * (6**n - 1) // 5 for n in self.sizes], float)
        return {"count": counts, "growth": growth, "formula_gap": np.maximum.accumulate(np.abs(counts - formula))}


def tables_of(n: int, gates: tuple[str, ...] = NAMES) -> np.ndarray:
    """Truth tables (functions, 2^n) of all functions that trees of n inputs with these gates compute, each once."""
    chosen = [g for g, name in enumerate(NAMES) if name in gates]
    below = np.array([[False, True]]) if n == 2 else tables_of(n // 2, gates)
    size = below.shape[1]
    left = np.repeat(below[:, None, :, None], size, axis=3)  # f, 1, x, y
    packed = []
    for each in below:
        codes = 2 * left[:, 0].astype(np.uint8) + each[None, None, :]
        outputs = TABLE[chosen].astype(bool)[:, codes]  # gates, f, x, y
        packed.append(np.packbits(outputs.reshape(len(chosen) * len(below), -1), axis=1))
        if len(packed) >= 64:
            packed = [_once(np.concatenate(packed))]
    return np.unpackbits(_once(np.concatenate(packed)), axis=1, count=size * size).astype(bool)


def _once(rows: np.ndarray) -> np.ndarray:
    """Equal rows once."""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    return np.unique(whole).view(np.uint8).reshape(-1, rows.shape[1])
