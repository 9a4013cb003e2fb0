"""Walkthroughs of the papers: about one minute each, at sizes that two cores train live."""

from __future__ import annotations

import dataclasses

from unlazy.learners.catalog import LEARNERS
from unlazy.learners.circuits.tree import end_to_end, layerwise_network
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.learners.one_step import first_step_network
from unlazy.papers.allenzhu2019.setting import momentum_sgd
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.play.pacing import PACE, paced, seeds_of
from unlazy.play.scenario import GrowingGap, InvalidValue, Preset, Scenario, Slider, Values
from unlazy.tasks.circuits.families import GenerativeCircuits
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.equal_bits import EqualBits
from unlazy.tasks.hierarchy import PairHierarchy
from unlazy.tasks.multi_index import XOR, MultiIndex


def _odd(values: Values, name: str) -> int:
    if values[name] % 2 == 0:
        raise InvalidValue(
            name, f"{name} must be odd, so that the labels are balanced, got {values[name]}."
        )
    return int(values[name])


def _emergence(values: Values) -> Scenario:
    k = _odd(values, "k")
    if values["D"] > values["d"]:
        raise InvalidValue(
            "D", f"D must be at most d = {values['d']} (orthogonal patterns), got {values['D']}."
        )
    family = BalancedParity(d=values["d"], D=values["D"], k=k, structure=values["structure"])
    # Without structure γ = 0, so γ and σ are those of the structured inputs, as in the tables.
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
        "linearized network": schedule.tangent(),
        "random features": schedule.random_features(),
    }
    return Scenario(
        family,
        {name: paced(learner, values["pace"]) for name, learner in watched.items()},
        {"linear": LEARNERS["linear"].value},
        values["n"],
        values["n"],
        seeds_of(values),
        fixed=("linearized network", "random features"),
    )


EMERGENCE = Preset(
    "shi2022",
    "Features emerge in two gradient steps",
    "Each input is a sum of some of D hidden patterns, k of which are relevant. The label is the "
    "parity of the number of relevant patterns in the input. In steps 1 and 2 the weight decay is "
    "full: with "
    "the step size η it is λ = 1/(2η), so a step replaces the weights by −η times the gradient of "
    "the loss.",
    (
        Slider("d", "d, input dimension", 60, 12, 200),
        Slider("D", "D, number of patterns", 30, 6, 100),
        Slider("k", "k, relevant patterns (odd)", 3, 3, 9, 2),
        Slider(
            "structure",
            "fraction of structured inputs",
            0.5,
            0.0,
            1.0,
            0.05,
            live=True,
            why="0: all patterns are independent uniform bits, so none is correlated with the "
            "label",
        ),
        Slider("m", "m, pairs of neurons (width 2m)", 40, 4, 200),
        Slider("T", "T, gradient steps", 300, 20, 600, 10),
        Slider("n", "n, training examples", 5000, 200, 10_000, 100),
        PACE,
    ),
    _emergence,
    (
        (
            0.0,
            "Random initialization: weights are almost orthogonal to the hidden direction, so all "
            "neurons are drawn near the center.",
        ),
        (
            0.004,
            "Step 1: full weight decay, λ = 1/(2η), removes the initial weights and leaves the "
            "gradient. "
            "Neurons jump to the hidden direction or its opposite.",
        ),
        (
            0.02,
            "The first layer has learned its features. The remaining steps train a classifier on "
            "top of them.",
        ),
        (
            0.5,
            "Dashed lines: learners with fixed features. They train for the same number of steps, "
            "except `linear`, which is solved directly.",
        ),
    ),
    "plane",
    ("shi2022/table1", "shi2022/step2"),
    "shi2022/task-imbalanced",
    ("network", "ntk", "linear"),
    {"d": "d", "D": "D", "k": "k", "structure": "structure"},
    GrowingGap("k", "k, relevant patterns", (3, 5, 7)),
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
        "first layer only": mean_field_sgd(**common, freeze_second=True),
    }
    n = batch * values["steps"]
    baselines = {name: LEARNERS[name].value for name in ("relu-features", "ntk")}
    return Scenario(family, watched, baselines, n, min(n, 1500), seeds_of(values))


XOR_PRESET = Preset(
    "glasgow2023",
    "XOR is learned in two phases",
    "The label is the XOR of two unknown coordinates out of d. Training is one-pass SGD, with "
    "fresh "
    "examples at each step. Neurons first turn to the hidden directions, which are the two "
    "diagonals of these coordinates, and then grow. At d = 40 the NTK needs fewer examples than "
    "SGD; at large d it needs more.",
    (
        Slider("d", "d, input dimension", 40, 4, 128),
        Slider("width", "width (neurons)", 96, 8, 256, 8),
        Slider("ratio", "batch size per dimension (batch size / d)", 2.0, 0.25, 6.0, 0.25),
        Slider("radius", "initial norm of each weight vector", 0.1, 0.05, 1.0, 0.05),
        Slider("steps", "gradient steps", 200, 20, 800, 20),
        Slider("distribution", "input distribution", "cube", choices=("cube", "gaussian")),
        Slider("rotated", "rotate the inputs randomly", False),
        PACE,
    ),
    _xor,
    (
        (
            0.0,
            "The inputs form four clusters, one at each star: the label is +1 at both ends of one "
            "hidden direction and −1 at both ends of the other. Neurons are initialized small, in "
            "random directions.",
        ),
        (
            0.02,
            "Phase 1: neurons align with the nearest hidden direction. They stay small, so the "
            "sign "
            "of the output is correct long before its absolute value is large.",
        ),
        (
            0.25,
            "Phase 2: aligned neurons and their second-layer weights grow, until the output is "
            "large, with the correct sign, on all four clusters.",
        ),
        (
            0.6,
            "Kernels also learn XOR, from about d² examples. For small d that is fewer than SGD "
            "needs, for large d more: see “How does the error depend on a task parameter?” below.",
        ),
    ),
    "plane",
    ("glasgow2023/phase1", "glasgow2023/phase2"),
    "glasgow2023/task",
    ("sgd", "ntk", "relu-features"),
    {name: name for name in ("d", "distribution", "rotated")},
    GrowingGap("d", "d, input dimension", (16, 32, 64, 128)),
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
    "A parity that gradient descent learns only from structured inputs",
    "In a fraction of the inputs (half by default) the k bits of the parity are all equal; in the "
    "others all bits are uniform. The former reveal which bits matter, the latter determine the "
    "function. If the fraction is 0, the label is uncorrelated with every bit, and neither the "
    "network nor the kernels learn it.",
    (
        Slider("d", "d, input bits", 24, 6, 60),
        Slider("k", "k, bits in the parity (odd)", 5, 3, 9, 2),
        Slider(
            "structured",
            "fraction of structured inputs",
            0.5,
            0.0,
            1.0,
            0.05,
            live=True,
            why="0: all bits are uniform",
        ),
        Slider("n", "n, training examples", 1600, 100, 4000, 100),
        Slider("m", "m, pairs of neurons (width 2m)", 256, 16, 512, 16),
        Slider("steps", "gradient steps", 600, 50, 1500, 50),
        PACE,
    ),
    _parity,
    (
        (0.0, "Random initialization: small weights on all bits."),
        (
            0.002,
            "Step 1: the weights of each neuron move by a multiple of the mean of label × input, "
            "which is large on the bits of the parity and noise on the others.",
        ),
        (
            0.05,
            "All neurons are aligned with one direction and differ in their bias: together they "
            "can represent any function of the number of relevant bits that are 1.",
        ),
        (
            0.6,
            "Fixed features (dashed) treat all bits alike, whether relevant or not.",
        ),
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
        {"layer by layer": layers, "end to end": whole},
        baselines,
        values["n"],
        min(values["n"], 2000),
        seeds_of(values),
    )


CIRCUIT = Preset(
    "malach2019",
    "A Boolean circuit is learned gate by gate",
    "The label is the output of a hidden tree of gates, each with two inputs. A tree of small "
    "networks is trained one "
    "layer at a time, from the inputs up. If the gates are correlated with the label, each network "
    "learns its gate.",
    (
        Slider("inputs", "input bits", "8", choices=("4", "8", "16")),
        Slider(
            "gates",
            "gate types",
            "AND/OR/NAND/NOR",
            choices=("AND/OR/NAND/NOR", "AND/OR", "XOR/XNOR", "AND/XOR"),
        ),
        Slider("n", "n, training examples", 4000, 100, 10_000, 100),
        Slider("k", "neurons per gate", 64, 8, 128, 8),
        Slider("steps", "gradient steps per layer", 300, 50, 3000, 50),
    ),
    _circuit,
    (
        (
            0.0,
            "Each gate is a small network of its two inputs, with random initialization.",
        ),
        (
            0.02,
            "The gates at the inputs train first, all on the label of the whole circuit. A gate "
            "that is correlated with the label is learned.",
        ),
        (0.4, "A trained layer is frozen; the next layer trains on its outputs."),
        (
            0.7,
            "The output gate trains last. A circuit of XOR/XNOR gates cannot be learned layer by "
            "layer, since the gates below the output are uncorrelated with the label: to see "
            "this, choose XOR/XNOR under “gate types”.",
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
        raise InvalidValue("d", f"d must be even (pairs of coordinates), got {values['d']}.")
    family = PairHierarchy(d=values["d"], alpha=values["alpha"], order=values["order"])

    def of(architecture: str) -> GradientDescent:
        cell = (0.1 * values["pace"], 5e-3)
        return momentum_sgd(architecture, "all", values["m"], values["n"], cell, values["epochs"])  # type: ignore[arg-type]

    watched = {
        "residual network": of("3resnet"),
        "three layers, no skip connection": of("3layer"),
        "two layers": of("2layer"),
    }
    return Scenario(
        family, watched, {"ntk": LEARNERS["ntk"].value}, values["n"], values["n"], seeds_of(values)
    )


HIERARCHY = Preset(
    "allenzhu2019",
    "A residual network learns F, then G(F)",
    "The target is β·F(x) + α·G(F(x)), with fixed β. The entries of F(x) are products of two "
    "coordinates. Each output of G is a product of several entries of F(x), as many as "
    "the order of G. A residual network learns F first and then G(F).",
    (
        Slider("d", "d, input dimension (even)", 20, 4, 30, 2),
        Slider("alpha", "α, coefficient of G(F)", 0.3, 0.0, 1.0, 0.05, live=True),
        Slider("order", "order of G (factors)", 4, 2, 4),
        Slider("n", "n, training examples", 600, 100, 3000, 100),
        Slider("m", "m, neurons per layer", 120, 20, 200, 10),
        Slider("epochs", "epochs", 100, 20, 500, 10),
        PACE,
    ),
    _hierarchy,
    (
        (
            0.0,
            "Bars: how much of F and of G(F) each network has learned (regression coefficients of "
            "its output; 1: fully learned).",
        ),
        (0.05, "F, the products of pairs, is learned first: it is simple and large."),
        (0.3, "G(F) follows in the residual network, whose second block receives the learned F."),
        (
            0.6,
            "At half of the steps the learning rate was divided by 10, which reduces the noise of "
            "SGD.",
        ),
    ),
    "signals",
    ("allenzhu2019/forward-learning", "allenzhu2019/figure2a"),
    "allenzhu2019/task",
    ("allenzhu2019/learner", "ntk"),
    {"d": "d", "alpha": "alpha", "order": "order"},
    GrowingGap("alpha", "α, coefficient of G(F)", (0.1, 0.3, 0.6)),
)

PRESETS = {
    preset.id: preset for preset in (EMERGENCE, XOR_PRESET, PARITY_PRESET, CIRCUIT, HIERARCHY)
}
