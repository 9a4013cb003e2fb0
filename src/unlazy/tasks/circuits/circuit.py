"""Boolean circuits: full binary trees of arbitrary two-bit gates over n = 2^d inputs.

Level i has 2^i nodes; level 0 is the output, level d the inputs x_1 … x_n. Gate (i, j) reads nodes
2j and 2j+1 of level i+1. A gate is a number below 16: its bit 2a + b is the output for inputs
(a, b), where 1 means +1 and 0 means −1. The product of two signs is therefore XNOR.

Reference: malach2019, Section 3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from unlazy.core.errors import BadInput, require, unknown
from unlazy.tasks.circuits.bits import Words, masks, pack, row_blocks

#: Names of the sixteen gates by number.
NAMES = (
    *("FALSE", "NOR", "LT", "NOTLEFT", "GT", "NOTRIGHT", "XOR", "NAND"),
    *("AND", "XNOR", "RIGHT", "LE", "LEFT", "GE", "OR", "TRUE"),
)
GATES = {name: number for number, name in enumerate(NAMES)}
#: The gates of the generative distribution: AND, OR and their negations.
MONOTONE_AND_NEGATED = ("AND", "OR", "NAND", "NOR")
#: `TABLE[g, p]`: output of gate g on pattern p = 2a + b.
TABLE = (np.arange(16)[:, None] >> np.arange(4)) & 1


@dataclasses.dataclass(frozen=True, eq=False)
class Circuit:
    """Full binary tree of gates; `gates[2^i − 1 + j]` is the number of gate (i, j)."""

    gates: np.ndarray

    def __post_init__(self) -> None:
        given = np.asarray(self.gates)
        require(
            given.ndim == 1 and given.dtype.kind in "iu",
            "gates must be a list of integers from 0 to 15.",
        )
        leaves = len(given) + 1
        check_leaves(leaves, f"{leaves} inputs for {len(given)} gates")
        for i in np.flatnonzero((given < 0) | (given > 15))[:1]:
            raise BadInput(f"Gate numbers must lie in 0 … 15, got {given[i]} for {_gate_name(i)}.")
        object.__setattr__(self, "gates", given.astype(np.uint8))

    @classmethod
    def of_levels(cls, levels: Iterable[Sequence[str | int]]) -> Circuit:
        """Return the circuit with the gates of level 0, level 1, …, each by name or number."""
        numbers: list[int] = []
        for i, level in enumerate(levels):
            require(
                len(level) == 2**i,
                f"Level {i} of a circuit must have {2**i} gates, got {len(level)}.",
            )
            numbers += [_number(gate, i, j) for j, gate in enumerate(level)]
        require(bool(numbers), "A circuit needs at least one gate.")
        return cls(np.array(numbers))

    @classmethod
    def parse(cls, text: str) -> Circuit:
        """Parse the output of `str`: one line per level, the output first, gate names by spaces.

        `/` may replace a line break; text after `#` is ignored.
        """
        lines = [line.split("#")[0].split() for line in text.replace("/", "\n").splitlines()]
        return cls.of_levels([line for line in lines if line])

    def __str__(self) -> str:
        return "\n".join(" ".join(NAMES[gate] for gate in level) for level in self.levels)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Circuit) and np.array_equal(self.gates, other.gates)

    def __hash__(self) -> int:
        return hash(self.gates.tobytes())

    @property
    def n(self) -> int:
        return len(self.gates) + 1

    @property
    def depth(self) -> int:
        """Number d of levels of gates."""
        return self.n.bit_length() - 1

    @property
    def levels(self) -> list[np.ndarray]:
        """Gate numbers of level 0, …, d − 1."""
        return [self.gates[2**i - 1 : 2 ** (i + 1) - 1] for i in range(self.depth)]

    def formula(self) -> str:
        """Return the circuit as one nested expression in x1 … xn."""
        row = [f"x{j + 1}" for j in range(self.n)]
        for level in reversed(self.levels):
            row = [f"{NAMES[gate]}({row[2 * j]}, {row[2 * j + 1]})" for j, gate in enumerate(level)]
        return row[0]

    def evaluate(self, x: Words) -> list[Words]:
        """Return packed values of all nodes of level 0, …, d, for packed inputs `(n, words)`."""
        require(len(x) == self.n, f"The circuit has {self.n} inputs, got {len(x)}.")
        nodes = [x]
        for level in reversed(self.levels):
            nodes.append(apply_gates(level, nodes[-1]))
        return nodes[::-1]

    def output(self, x: Words) -> Words:
        """Return the packed output, one row of words."""
        for level in reversed(self.levels):
            x = apply_gates(level, x)
        result: Words = x[0]
        return result


def normal_form(gates: np.ndarray, words: int) -> list[Words]:
    """Return masks c₀, c₁, c₂, c₃ with gate(a, b) = c₀ ⊕ c₁a ⊕ c₂b ⊕ c₃ab.

    All types of gates use the same few operations.
    """
    table = TABLE[gates]
    return [
        masks(part, words)
        for part in (
            table[:, 0],
            table[:, 2] ^ table[:, 0],
            table[:, 1] ^ table[:, 0],
            table.sum(axis=1) % 2,
        )
    ]


def apply_form(form: Sequence[Words], left: Words, right: Words, out: Words | None = None) -> Words:
    """Apply gates in normal form to words of inputs."""
    result: Words = np.bitwise_and(left, form[3], out=out)
    result ^= form[2]
    result &= right
    result ^= left & form[1]
    result ^= form[0]
    return result


def apply_gates(gates: np.ndarray, below: Words) -> Words:
    """Apply one level: gate j to rows 2j and 2j + 1."""
    result = np.empty((len(gates), below.shape[1]), np.uint64)
    for rows in row_blocks(*result.shape):
        pair = below[2 * rows.start : 2 * rows.stop]
        apply_form(
            normal_form(gates[rows], below.shape[1]), pair[0::2], pair[1::2], out=result[rows]
        )
    return result


def every_input(n: int) -> Words:
    """Return all 2^n inputs, packed: input j is bit n − 1 − j of the example's index."""
    require(n <= 20, f"All inputs can be listed for at most 20 bits, got {n}.")
    example = np.arange(2**n)
    return pack((example[:, None] >> np.arange(n)[::-1]) & 1 == 1)


def check_leaves(n: int, given: str) -> None:
    """Raise `BadInput` unless the number of inputs is 2, 4, 8, …"""
    require(
        n >= 2 and n & (n - 1) == 0,
        f"The number of inputs must be 2, 4, 8, … (a power of two), got {given}.",
    )


def _gate_name(index: int) -> str:
    level = int(index + 1).bit_length() - 1
    return f"gate {index - 2**level + 2} of level {level}"


def _number(gate: str | int, i: int, j: int) -> int:
    if isinstance(gate, str):
        if gate.upper() not in GATES:
            raise BadInput(f"Gate {j + 1} of level {i}: {unknown('gate', gate.upper(), GATES)}")
        return GATES[gate.upper()]
    return int(gate)
