"""Malach, Shalev-Shwartz (2020), "Learning Boolean Circuits with Neural Networks".

Layerwise gradient descent learns circuits whose gates are correlated with the label.

unlazy reproduce 'malach2019/*'     takes some minutes on two cores
"""

from __future__ import annotations

from unlazy.core.naming import Entry
from unlazy.learners.circuits.layerwise import Layerwise
from unlazy.learners.circuits.tree import end_to_end, layerwise_network
from unlazy.papers.malach2019.circuits import (
    CIRCUIT_COUNT,
    LCA,
    LEMMA6,
    LEMMA8,
    TASK_CIRCUIT,
    TASK_GENERATIVE,
    TASK_PRODUCT,
)
from unlazy.papers.malach2019.depth import DEPTH_SEPARATION, LEMMA23, THEOREM12
from unlazy.papers.malach2019.errata import ERRATA as ERRATA
from unlazy.papers.malach2019.figure1 import FIGURE1, fully_connected
from unlazy.papers.malach2019.figure4 import FIGURE4
from unlazy.papers.malach2019.learning import (
    COROLLARY10,
    LEARNER,
    LEMMA14,
    NO_CORRELATION,
    THEOREM2,
)
from unlazy.papers.malach2019.queries import STATISTICAL_QUERIES
from unlazy.tasks.circuits.circuit import NAMES
from unlazy.tasks.circuits.families import BiasedParity, GenerativeCircuits, ProductCircuits

CITATION = (
    "E. Malach, S. Shalev-Shwartz. Learning Boolean Circuits with Neural Networks. "
    "arXiv:1910.11923v2, 2020."
)
EDITION = (
    "The text we read is arXiv:1910.11923v2 of January 18, 2020; no other edition was compared. "
    "Formulas were read from extracted text, in which symbols may have been lost."
)
BIBTEX = """@article{malach2019,
  title = {Learning {Boolean} Circuits with Neural Networks},
  author = {Malach, Eran and Shalev-Shwartz, Shai},
  journal = {arXiv preprint arXiv:1910.11923},
  year = {2019}
}"""

CLAIMS = (
    FIGURE1,
    TASK_CIRCUIT,
    CIRCUIT_COUNT,
    TASK_PRODUCT,
    TASK_GENERATIVE,
    LEARNER,
    LCA,
    THEOREM2,
    COROLLARY10,
    LEMMA14,
    NO_CORRELATION,
    STATISTICAL_QUERIES,
    LEMMA6,
    LEMMA8,
    LEMMA23,
    THEOREM12,
    DEPTH_SEPARATION,
    FIGURE4,
)
NOT_RUN = ()

TASKS = {
    "malach2019/figure1": Entry(
        BiasedParity(128, 5, 0.6), "Figure 1: parity of 5 out of 128 biased bits"
    ),
    "malach2019/task-circuit": Entry(
        ProductCircuits(16, gates=NAMES),
        "Section 3: random circuits of all sixteen gates on biased bits",
    ),
    "malach2019/task-product": Entry(
        BiasedParity(32, 5, 0.75), "Section 5.1: parity of log n biased bits"
    ),
    "malach2019/task-generative": Entry(
        GenerativeCircuits(32),
        "Section 5.2: random AND/OR/NAND/NOR circuits under the generative distribution",
    ),
}

LEARNERS = {
    "malach2019/learner": Entry(
        Layerwise(margin=(2 / 3) ** 5, precision=64),
        "Algorithm 1 on gate statistics, n = 32",
    ),
    "malach2019/learner-network": Entry(
        layerwise_network(8, margin=(2 / 3) ** 3, steps=5_000),
        "Algorithm 1 on the tree network through its loss, n = 8",
    ),
    "malach2019/end-to-end": Entry(
        end_to_end(steps=3_000, batch=128, rate=3e-3),
        "the same tree network trained end to end by Adam, n = 16",
    ),
    "malach2019/figure1-network": Entry(
        fully_connected(64, 128, 7_000, 512), "Figure 1: two-layer ReLU network, Adam"
    ),
}
