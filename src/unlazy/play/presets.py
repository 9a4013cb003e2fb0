"""The stories of the papers, each told in about a minute, at sizes that two cores train while one
watches.
"""

from __future__ import annotations

import dataclasses

from unlazy.learners.catalog import LEARNERS
from unlazy.learners.circuits.tree import end_to_end, layerwise_network
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.learners.one_step import first_step_network
from unlazy.learners.parts import Stage
from unlazy.papers.allenzhu2019.setting import momentum_sgd
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.play.scenario import GrowingGap, Preset, Scenario, Slider, Values, WrongNumber
from unlazy.tasks.circuits.families import GenerativeCircuits
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.equal_bits import EqualBits
from unlazy.tasks.hierarchy import PairHierarchy
from unlazy.tasks.multi_index import XOR, MultiIndex

PACE = Slider(
    "pace",
    "step size, times",
    1.0,
    0.1,
    4.0,
    0.05,
    live=True,
    why="multiplies the step sizes; a run goes on with it",
)


def seeds_of(values: Values) -> tuple[int, ...]:
    """The seeds of a run."""
    return tuple(range(values["seed"], values["seed"] + values["seeds"]))


def paced(learner: GradientDescent, factor: float) -> GradientDescent:
    """The same with all step sizes times a factor, but for steps that forget, whose size is from
    theory.
    """
    return dataclasses.replace(
        learner, stages=tuple(_paced(stage, factor) for stage in learner.stages)
    )


def _paced(stage: Stage, factor: float) -> Stage:
    if not isinstance(stage, Descent) or stage.full_decay:
        return stage
    return dataclasses.replace(
        stage, rates={group: rate * factor for group, rate in stage.rates.items()}
    )


def _odd(values: Values, name: str) -> int:
    if values[name] % 2 == 0:
        raise WrongNumber(
            name,
            f"{name} is odd here, so that both labels are equally likely; {values[name]} is not.",
        )
    return int(values[name])


def _emergence(values: Values) -> Scenario:
    k = _odd(values, "k")
    if values["D"] > values["d"]:
        raise WrongNumber(
            "D", f"There are at most d = {values['d']} orthogonal patterns, but D is {values['D']}."
        )
    family = BalancedParity(d=values["d"], D=values["D"], k=k, structure=values["structure"])
    # Without structure γ is zero: the constants are those of the structured law, as in the tables.
    moments = dataclasses.replace(family, structure=0.5).moments
    schedule = TwoStep.practical(
        k=k,
        m=values["m"],
        T=values["T"],
        gamma=float(moments.gamma),
        sigma=float(moments.sigma),
        batch=min(200, values["n"]),
    )
    watched = {
        "network": schedule.network(),
        "tangent model": schedule.tangent(),
        "random features": schedule.random_features(),
    }
    return Scenario(
        family,
        {name: paced(learner, values["pace"]) for name, learner in watched.items()},
        {"linear": LEARNERS["linear"].value},
        values["n"],
        values["n"],
        seeds_of(values),
    )


EMERGENCE = Preset(
    "shi2022",
    "Two steps of emergence",
    "Inputs are sums of hidden patterns; the label is the parity of a few of them. The network "
    "forgets its first weights "
    "twice, and with each "
    "step its neurons are what the gradient makes of the data alone.",
    (
        Slider("d", "d, dimension of an input", 60, 12, 200),
        Slider("D", "D, hidden patterns", 30, 6, 100),
        Slider("k", "k, patterns in the label (odd)", 3, 3, 9, 2),
        Slider(
            "structure",
            "share of inputs with structure",
            0.5,
            0.0,
            1.0,
            0.05,
            live=True,
            why="0: nothing tells the patterns apart",
        ),
        Slider("m", "m, pairs of neurons", 40, 4, 200),
        Slider("T", "T, steps", 300, 20, 600, 10),
        Slider("n", "n, examples", 5000, 200, 10_000, 100),
        PACE,
    ),
    _emergence,
    (
        (
            0.0,
            "At first neurons point anywhere: seen from the hidden direction, all are near the "
            "middle.",
        ),
        (
            0.004,
            "One step: the weights are forgotten, and what is left is the gradient. Neurons "
            "jump to the hidden direction or its opposite.",
        ),
        (
            0.02,
            "The first layer has its features. From here on a classifier is learned on top of "
            "them.",
        ),
        (0.5, "The rivals train as long, on features that do not move."),
    ),
    "plane",
    ("shi2022/table1", "shi2022/step2"),
    "shi2022/task-imbalanced",
    ("network", "ntk", "linear"),
    {"d": "d", "D": "D", "k": "k", "structure": "structure"},
    GrowingGap("k", "k, patterns in the label", (3, 5, 7)),
)


def _xor(values: Values) -> Scenario:
    family = MultiIndex(
        d=values["d"],
        polynomial=XOR,
        distribution=values["distribution"],
        rotated=values["rotated"],
    )
    batch = max(1, round(values["ratio"] * values["d"]))
    common = {
        "width": values["width"],
        "batch": batch,
        "radius": values["radius"],
        "step": 0.15 * values["pace"],
        "steps": values["steps"],
    }
    watched = {
        "both layers": mean_field_sgd(**common),
        "first layer alone": mean_field_sgd(**common, freeze_second=True),
    }
    n = batch * values["steps"]
    baselines = {name: LEARNERS[name].value for name in ("relu-features", "ntk")}
    return Scenario(family, watched, baselines, n, min(n, 1500), seeds_of(values))


XOR_PRESET = Preset(
    "glasgow2023",
    "XOR in two phases",
    "The label is the product of two hidden coordinates out of d. Fresh examples at each step: "
    "first neurons find the two "
    "hidden directions, "
    "then they grow until the margin is large everywhere.",
    (
        Slider("d", "d, coordinates", 40, 4, 128),
        Slider("width", "width, neurons", 96, 8, 256, 8),
        Slider("ratio", "examples a step, times d", 2.0, 0.25, 6.0, 0.25),
        Slider("radius", "radius of the initial weights", 0.1, 0.05, 1.0, 0.05),
        Slider("steps", "steps", 200, 20, 800, 20),
        Slider("distribution", "distribution of the inputs", "cube", choices=("cube", "gaussian")),
        Slider("rotated", "in an unknown basis", False),
        PACE,
    ),
    _xor,
    (
        (
            0.0,
            "Four clusters: along one hidden direction the label is +1, along the other −1. "
            "Neurons start small and point anywhere.",
        ),
        (
            0.02,
            "Phase one: neurons turn towards the nearest of the two directions. They stay "
            "small: the sign of the output is right "
            "long before its size is.",
        ),
        (
            0.25,
            "Phase two: neurons that have found a direction grow, and the second layer with "
            "them, until the margin is large.",
        ),
        (
            0.6,
            "Kernels learn XOR, too, from about d² examples. In few dimensions that is less "
            "than SGD takes, in many it is more: see "
            "how the gap grows.",
        ),
    ),
    "plane",
    ("glasgow2023/phase1", "glasgow2023/phase2"),
    "glasgow2023/task",
    ("sgd", "ntk", "relu-features"),
    {"d": "d", "distribution": "distribution", "rotated": "rotated"},
    GrowingGap("d", "d, coordinates", (16, 32, 64, 128)),
)


def _parity(values: Values) -> Scenario:
    family = EqualBits(d=values["d"], k=_odd(values, "k"), structured=values["structured"])
    network = first_step_network(values["m"], steps=values["steps"], rate=0.03 * values["pace"])
    baselines = {name: LEARNERS[name].value for name in ("linear", "ntk", "polynomial")}
    return Scenario(
        family, {"network": network}, baselines, values["n"], values["n"], seeds_of(values)
    )


PARITY_PRESET = Preset(
    "daniely2020",
    "The parity that only structure makes learnable",
    "In half of the inputs all bits of the parity are equal; in the other half all bits are "
    "fair coins. The first half shows "
    "where the parity "
    "is, the second what it is. Take the structure away and nothing learns it.",
    (
        Slider("d", "d, bits", 24, 6, 60),
        Slider("k", "k, bits in the parity (odd)", 5, 3, 9, 2),
        Slider(
            "structured",
            "share of inputs with structure",
            0.5,
            0.0,
            1.0,
            0.05,
            live=True,
            why="0: all bits are fair coins",
        ),
        Slider("n", "n, examples", 1600, 100, 4000, 100),
        Slider("m", "m, pairs of neurons", 256, 16, 512, 16),
        Slider("steps", "steps", 600, 50, 1500, 50),
        PACE,
    ),
    _parity,
    (
        (0.0, "Small weights on all bits."),
        (
            0.002,
            "One step: what every neuron is given is the mean of y·x, which is large on the "
            "bits of the parity and noise elsewhere.",
        ),
        (
            0.05,
            "All neurons look along one direction with kinks at different places of it: enough "
            "to draw a zigzag of the number of ones.",
        ),
        (0.6, "Fixed features cannot: they would have to know beforehand which bits matter."),
    ),
    "tiles",
    ("daniely2020/theorem1", "daniely2020/contest"),
    "daniely2020/task",
    ("one-step-network", "linear", "ntk", "polynomial"),
    {"d": "d", "k": "k", "structured": "structured"},
    GrowingGap("k", "k, bits in the parity", (3, 5, 7)),
)


def _circuit(values: Values) -> Scenario:
    n = int(values["inputs"])
    family = GenerativeCircuits(n, gates=tuple(values["gates"].split("/")))
    depth = n.bit_length() - 1
    layers = layerwise_network(n, margin=(2 / 3) ** depth, steps=values["steps"], k=values["k"])
    whole = end_to_end(steps=depth * values["steps"], batch=min(128, values["n"]), rate=3e-3)
    baselines = {"linear": LEARNERS["linear"].value, "ntk": LEARNERS["ntk"].value}
    return Scenario(
        family,
        {"layer by layer": layers, "all at once": whole},
        baselines,
        values["n"],
        min(values["n"], 2000),
        seeds_of(values),
    )


CIRCUIT = Preset(
    "malach2019",
    "A circuit, gate by gate",
    "The label is a hidden circuit of gates on pairs of bits. A tree of small networks is "
    "trained one layer at a time, from "
    "the inputs up; where "
    "gates are correlated with the label, each finds its own function.",
    (
        Slider("inputs", "inputs", "8", choices=("4", "8", "16")),
        Slider(
            "gates",
            "gates",
            "AND/OR/NAND/NOR",
            choices=("AND/OR/NAND/NOR", "AND/OR", "XOR/XNOR", "AND/XOR"),
        ),
        Slider("n", "n, examples", 4000, 100, 10_000, 100),
        Slider("k", "neurons of a gate", 64, 8, 128, 8),
        Slider("steps", "steps a layer", 300, 50, 3000, 50),
    ),
    _circuit,
    (
        (
            0.0,
            "Every gate is a small network of its two inputs. At first none of them says anything.",
        ),
        (
            0.02,
            "The gates at the inputs train first, all on the label of the whole circuit: where "
            "it is correlated with a "
            "gate, the gate is found.",
        ),
        (0.4, "A layer that has settled stays. The next one trains on what it gives."),
        (
            0.7,
            "The output gate comes last. Gates of XOR alone show no correlation, and cannot be "
            "learned so: try them.",
        ),
    ),
    "tree",
    ("malach2019/learner", "malach2019/theorem2"),
    "malach2019/task-generative",
    ("linear", "ntk", "network"),
    {"inputs": "n"},
    None,
)


def _hierarchy(values: Values) -> Scenario:
    if values["d"] % 2:
        raise WrongNumber("d", f"Coordinates come in pairs: d is even, but {values['d']} is not.")
    family = PairHierarchy(d=values["d"], alpha=values["alpha"], order=values["order"])

    def of(architecture: str) -> GradientDescent:
        cell = (0.1 * values["pace"], 5e-3)
        return momentum_sgd(architecture, "all", values["m"], values["n"], cell, values["epochs"])  # type: ignore[arg-type]

    watched = {
        "residual network": of("3resnet"),
        "three layers, no skip": of("3layer"),
        "two layers": of("2layer"),
    }
    return Scenario(
        family, watched, {"ntk": LEARNERS["ntk"].value}, values["n"], values["n"], seeds_of(values)
    )


HIERARCHY = Preset(
    "allenzhu2019",
    "F before G(F)",
    "The target is β·F + α·G(F): products of pairs of coordinates, and a smaller product of "
    "some of those. A residual "
    "network learns F first, and "
    "then finds G(F) on top of it.",
    (
        Slider("d", "d, coordinates (even)", 20, 4, 30, 2),
        Slider("alpha", "α, size of G(F)", 0.3, 0.0, 1.0, 0.05, live=True),
        Slider("order", "factors of G", 4, 2, 4),
        Slider("n", "n, examples", 600, 100, 3000, 100),
        Slider("m", "m, neurons a layer", 120, 20, 200, 10),
        Slider("epochs", "epochs", 100, 20, 500, 10),
        PACE,
    ),
    _hierarchy,
    (
        (0.0, "The bars say how much of each signal is in the output of the network."),
        (0.05, "F, the products of pairs, is found first: it is simple and large."),
        (0.3, "G(F) follows in the residual network, which can build it from the F that it has."),
        (0.6, "Where the step size falls to a tenth, what is left of the noise goes."),
    ),
    "signals",
    ("allenzhu2019/forward-learning", "allenzhu2019/figure2a"),
    "allenzhu2019/task",
    ("allenzhu2019/learner", "ntk"),
    {"d": "d", "alpha": "alpha", "order": "order"},
    GrowingGap("alpha", "α, size of G(F)", (0.1, 0.3, 0.6)),
)

PRESETS = {
    preset.id: preset for preset in (EMERGENCE, XOR_PRESET, PARITY_PRESET, CIRCUIT, HIERARCHY)
}
