"""Radhakrishnan, Beaglehole, Pandit, Belkin (2024), "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models".

UNLAZY_UCI=uci.npz unlazy reproduce 'radhakrishnan2024/*'     a few minutes on two cores
"""

from unlazy.core.naming import Entry
from unlazy.papers.radhakrishnan2024.refitting import REFITTING, SEEN_LABELS

CITATION = (
    "A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin. Mechanism for feature learning in "
    "neural networks and backpropagation-free machine learning models. Science 383, 2024."
)
EDITION = (
    "The text of the paper was not available to us and was not checked for errors; the claims test "
    "the released experiment on UCI tables."
)

BIBTEX = """@article{radhakrishnan2024,
  author = {Radhakrishnan, Adityanarayanan and Beaglehole, Daniel and Pandit, Parthe and
    Belkin, Mikhail},
  title = {Mechanism for feature learning in neural networks and backpropagation-free machine
    learning models},
  journal = {Science},
  volume = {383},
  year = {2024}
}"""

CLAIMS = (REFITTING, SEEN_LABELS)
ERRATA = ()
NOT_RUN = ()
TASKS: dict[str, Entry] = {}
LEARNERS: dict[str, Entry] = {}

__all__ = ["BIBTEX", "CITATION", "CLAIMS", "EDITION", "ERRATA", "LEARNERS", "NOT_RUN", "TASKS"]
