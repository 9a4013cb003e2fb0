"""Write the notebooks, one per paper: `python scripts/notebooks.py`. Tests run their code.

They are stored without outputs, so that diffs show only changes of text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unlazy.lab import registry

FOLDER = Path(__file__).parent.parent / "notebooks"

#: Notes on scales.
SCALES = {
    "laptop": "",
    "smoke": "\n\nThe smoke scale only tests that everything runs; the `laptop` scale gives a "
    "verdict and takes longer.",
}
#: By paper: a claim, a scale at which it takes seconds, and a short study with an introduction.
STUDIES = {
    "shi2022": (
        "shi2022/table6-signs",
        "laptop",
        "Two steps with full decay of the initial weights: directions of neurons before and after.",
        """from unlazy import LocalEngine, ParityMixture, Performance, Trial
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.probes.neurons import Silhouette
from unlazy.report.figures import draw
from unlazy.report.neurons import neuron_plot

family = ParityMixture(d=30, D=12, k=3, po=0.5)
moments = family.moments
gamma, sigma = float(moments.gamma), float(moments.sigma)
schedule = TwoStep.practical(k=3, m=20, T=60, gamma=gamma, sigma=sigma, batch=100)
learner = schedule.network(record=(0, 1, 2))
trial = Trial(family, learner, 2000, 10, (Performance(1000), Silhouette(40)))
(record,) = LocalEngine().run([trial])
print(dict(zip(record.steps, record.measurements["test_accuracy"])))
draw(neuron_plot(record))""",
    ),
    "glasgow2023": (
        "glasgow2023/task",
        "smoke",
        "SGD on fresh examples finds the two hidden directions: the largest cosine, and the error.",
        """from unlazy import Alignment, LocalEngine, MultiIndex, Performance, Trial
from unlazy.learners.mean_field import mean_field_sgd

recorded = (0, 20, 40, 60, 80)
learner = mean_field_sgd(width=48, batch=32, radius=0.1, step=0.2, steps=100, record=recorded)
trial = Trial(MultiIndex(d=12), learner, 3200, 10, (Performance(1000), Alignment()))
(record,) = LocalEngine().run([trial])
accuracies, cosines = record.measurements["test_accuracy"], record.measurements["cosine"]
for step, accuracy, cosine in zip(record.steps, accuracies, cosines):
    print(f"step {step:3d}: accuracy {accuracy:5.1f} %, largest cosine {cosine:.2f}")""",
    ),
    "malach2019": (
        "malach2019/circuit-count",
        "laptop",
        "A hidden circuit, and what layerwise learning makes of its examples.",
        """import jax

from unlazy.learners.circuits.layerwise import Layerwise
from unlazy.report.circuits import recovery_plot, recovery_text
from unlazy.report.figures import draw
from unlazy.tasks.circuits.families import GenerativeCircuits
from unlazy.tasks.circuits.recovery import recovery

task = GenerativeCircuits(8).task(key=jax.random.key(3))
trace = Layerwise(margin=(2 / 3) ** 3).fit(task.sampler, 4000, key=jax.random.key(4))
learned = trace.at(0).circuit
seen = recovery(task.circuit, task.input_distribution, learned)
print(recovery_text(task.circuit, learned, seen))
draw(recovery_plot(task.circuit, learned, seen))""",
    ),
    "daniely2020": (
        "daniely2020/lemma5",
        "laptop",
        "One step of gradient descent and a readout, against a linear model, on a parity whose "
        "structure shows where it is.",
        """import unlazy
from unlazy.learners.one_step import one_step_readout
from unlazy.tasks.equal_bits import EqualBits

outcome = unlazy.compare(
    EqualBits(d=10, k=3),
    {"one step": one_step_readout(64), "linear": "linear"},
    n=400,
    seeds=3,
    budget=2,
    test=1000,
)
print(outcome.conclusion(400))
outcome""",
    ),
    "allenzhu2019": (
        "allenzhu2019/complexity",
        "smoke",
        "How much of F and of G(F) is in the output of a residual network along training.",
        """from unlazy.papers.allenzhu2019.setting import momentum_sgd
from unlazy.play.training import LiveTraining
from unlazy.tasks.hierarchy import PairHierarchy

learner = momentum_sgd("3resnet", "all", 60, 300, (0.1, 5e-3), 60)
training = LiveTraining(PairHierarchy(d=8, order=2), learner, 300, (10,))
moment = training.begin()
for step in (0, 20, 60, 120, 240, 360):
    moment = training.advance(moment, step)
    seen = training.look(moment)
    print(f"step {step:3d}: {seen['base'][0]:.2f} of F, {seen['composite'][0]:.2f} of G(F)")""",
    ),
}


def notebook(paper: str) -> dict[str, Any]:
    """Return the notebook of a paper."""
    claim, scale, sentence, code = STUDIES[paper]
    walkthrough = (
        (FOLDER.parent / "docs" / "summaries" / f"{paper}.md").read_text(encoding="utf-8").strip()
    )
    statement = registry.claims()[claim].statement
    run = f'(verdict,) = unlazy.reproduce("{claim}", scale="{scale}", first_seed=10)'
    run = f"import unlazy\n\n{run}\nprint(verdict.outcome, verdict.reason)"
    cells = [
        ("markdown", f"# `{paper}`\n\n{walkthrough}"),
        ("markdown", f"## Run a claim\n\n`{claim}`: {statement}{SCALES[scale]}"),
        (
            "code",
            run,
        ),
        ("markdown", f"## A short study\n\n{sentence}"),
        ("code", code),
        (
            "markdown",
            f"Next: `unlazy play {paper}`, `unlazy reproduce '{paper}/*'`, and the page of "
            "this paper in the documentation.",
        ),
    ]
    return {
        "cells": [_cell(index, kind, text) for index, (kind, text) in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(index: int, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{index}",
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def written(paper: str) -> str:
    """Return the file content of a notebook."""
    return json.dumps(notebook(paper), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for paper in STUDIES:
        (FOLDER / f"{paper}.ipynb").write_text(written(paper), encoding="utf-8")
