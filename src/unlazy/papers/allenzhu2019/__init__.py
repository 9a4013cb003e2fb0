"""Allen-Zhu, Li (2019), "What Can ResNet Learn Efficiently, Going Beyond Kernels?".

Three-layer ResNets learn hierarchical targets, kernels do not.

unlazy reproduce 'allenzhu2019/*'
"""

from unlazy.core.naming import Entry
from unlazy.papers.allenzhu2019.coupling import LEMMA_C1
from unlazy.papers.allenzhu2019.errata import ERRATA
from unlazy.papers.allenzhu2019.existence import CLAIM_E3, LEMMA_E2
from unlazy.papers.allenzhu2019.facts import COMPLEXITY, FACT_A3, LEARNER, TASK
from unlazy.papers.allenzhu2019.figure2 import FIGURE2A, FIGURE2B
from unlazy.papers.allenzhu2019.figure3 import FIGURE3
from unlazy.papers.allenzhu2019.figure4 import FIGURE4, PATIENCE
from unlazy.papers.allenzhu2019.forward import FORWARD
from unlazy.papers.allenzhu2019.hard_instance import COROLLARY, LEMMA_D1
from unlazy.papers.allenzhu2019.lower_bounds import LOWER_BOUNDS
from unlazy.papers.allenzhu2019.probability import LEMMA_B3, PROPOSITION_B4
from unlazy.papers.allenzhu2019.random_patterns import LEMMA_E1
from unlazy.papers.allenzhu2019.setting import momentum_sgd
from unlazy.papers.allenzhu2019.theorem1 import THEOREM1
from unlazy.tasks.hierarchy import HardInstance, PairHierarchy, RealParity, SmoothHierarchy

CITATION = (
    "Z. Allen-Zhu, Y. Li. What Can ResNet Learn Efficiently, Going Beyond Kernels? "
    "arXiv:1905.10337v3, 2020 (earlier edition: NeurIPS 2019)."
)
EDITION = (
    "The text we read is arXiv:1905.10337v3 of June 1, 2020, which by its own note strengthens the "
    "experiments of earlier versions; the edition published at NeurIPS 2019 was not read. "
    "Formulas were read from extracted text, in which symbols may have been lost."
)
BIBTEX = """@inproceedings{allenzhu2019,
  title = {What Can {ResNet} Learn Efficiently, Going Beyond Kernels?},
  author = {Allen-Zhu, Zeyuan and Li, Yuanzhi},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {32},
  note = {Version read: arXiv:1905.10337v3, 2020},
  year = {2019}
}"""

CLAIMS = (
    TASK,
    COMPLEXITY,
    FACT_A3,
    LEARNER,
    THEOREM1,
    COROLLARY,
    LEMMA_B3,
    PROPOSITION_B4,
    LEMMA_C1,
    LOWER_BOUNDS,
    LEMMA_D1,
    LEMMA_E1,
    LEMMA_E2,
    CLAIM_E3,
    FIGURE2A,
    FIGURE2B,
    FORWARD,
    FIGURE3,
    FIGURE4,
    PATIENCE,
)

__all__ = ["BIBTEX", "CITATION", "CLAIMS", "EDITION", "ERRATA", "LEARNERS", "NOT_RUN", "TASKS"]

NOT_RUN = ()

TASKS = {
    "allenzhu2019/task": Entry(
        PairHierarchy(), "products of pairs of 30 signs, plus 0.3 times a product of four of them"
    ),
    "allenzhu2019/task-hard": Entry(
        HardInstance(d=30, fair=20),
        "three of 20 signs plus 0.3 times their product, and 10 other coordinates",
    ),
    "allenzhu2019/task-smooth": Entry(
        SmoothHierarchy(),
        "networks of smooth neurons on the sphere, plus 0.3 times networks of those",
    ),
    "allenzhu2019/task-parity": Entry(RealParity(), "parity of six of 40 signs, as regression"),
}

LEARNERS = {
    "allenzhu2019/learner": Entry(
        momentum_sgd("3resnet", "all", 100, 500, (0.1, 5e-3), 400),
        "three-layer ResNet, SGD with momentum",
    ),
    "allenzhu2019/learner-hidden": Entry(
        momentum_sgd("3resnet", "hidden", 100, 1000, (0.2, 5e-4), 400),
        "three-layer ResNet, only hidden layers trained",
    ),
    "allenzhu2019/learner-3layer": Entry(
        momentum_sgd("3layer", "all", 100, 500, (0.1, 5e-3), 400),
        "three-layer network without skip connection",
    ),
}
