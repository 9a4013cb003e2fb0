"""Glasgow (2023), "SGD Finds then Tunes Features in Two-Layer Neural Networks".

SGD learns XOR from nearly d examples, in two phases.

unlazy reproduce 'glasgow2023/*'     takes some minutes on two cores
"""

from unlazy.core.naming import Entry
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.papers.glasgow2023.auxiliary import BALANCE, MINIBATCH, SPREAD
from unlazy.papers.glasgow2023.early import DEVIATION, GRADIENTS, PHASE1
from unlazy.papers.glasgow2023.errata import ERRATA, NOT_RUN
from unlazy.papers.glasgow2023.late import CLEAN, FROZEN, PHASE2, PHASE2_STEP
from unlazy.papers.glasgow2023.learning import LEARNER, PREDICTIONS, SCALING, TASK, THEOREM
from unlazy.papers.glasgow2023.limits import LOWERBOUND
from unlazy.papers.glasgow2023.proof_steps import HELPER, LOSS_DERIVATIVES, SMALL_BALL, STRONG
from unlazy.tasks.multi_index import MultiIndex, product, staircase

CITATION = (
    "M. Glasgow. SGD Finds then Tunes Features in Two-Layer Neural Networks with Near-Optimal "
    "Sample Complexity: A Case Study in the XOR Problem. ICLR 2024 (arXiv 2023)."
)
EDITION = (
    "The text we read has no title page, date or list of references, so it is not known whether it "
    "is the arXiv or the ICLR edition; no other one was compared. It was extracted by character "
    "recognition: many symbols of formulas were lost and derived again."
)
BIBTEX = """@inproceedings{glasgow2023,
  title = {{SGD} Finds then Tunes Features in Two-Layer Neural Networks with Near-Optimal
    Sample Complexity: A Case Study in the {XOR} Problem},
  author = {Glasgow, Margalit},
  booktitle = {International Conference on Learning Representations},
  year = {2024}
}"""

CLAIMS = (
    TASK,
    LEARNER,
    THEOREM,
    SCALING,
    PREDICTIONS,
    PHASE1,
    GRADIENTS,
    DEVIATION,
    LOSS_DERIVATIVES,
    HELPER,
    STRONG,
    SPREAD,
    SMALL_BALL,
    MINIBATCH,
    BALANCE,
    PHASE2,
    PHASE2_STEP,
    CLEAN,
    FROZEN,
    LOWERBOUND,
)

__all__ = ["BIBTEX", "CITATION", "CLAIMS", "EDITION", "ERRATA", "LEARNERS", "NOT_RUN", "TASKS"]

TASKS = {
    "glasgow2023/task": Entry(MultiIndex(d=128), "XOR of two hidden coordinates on the cube"),
    "glasgow2023/task-rotated": Entry(
        MultiIndex(d=64, rotated=True), "XOR on a cube in an unknown basis"
    ),
    "glasgow2023/task-gaussian": Entry(
        MultiIndex(d=128, distribution="gaussian"), "sign of −x₁x₂ on Gaussian inputs"
    ),
    "glasgow2023/task-parity3": Entry(
        MultiIndex(d=64, polynomial=product(3)), "parity of three hidden coordinates, leap 3"
    ),
    "glasgow2023/task-staircase": Entry(
        MultiIndex(d=64, polynomial=staircase(1, 1, 1)),
        "sign of a staircase of three hidden coordinates, leap 1",
    ),
}

LEARNERS = {
    "glasgow2023/learner": Entry(
        mean_field_sgd(width=128, batch=128),
        "mean-field SGD on both layers, fresh minibatches of 128",
    ),
    "glasgow2023/learner-frozen": Entry(
        mean_field_sgd(width=128, batch=128, freeze_second=True),
        "mean-field SGD on the first layer only",
    ),
    "glasgow2023/learner-bias": Entry(
        mean_field_sgd(width=128, batch=128, bias=True),
        "mean-field SGD with a constant input coordinate, for odd parities",
    ),
}
