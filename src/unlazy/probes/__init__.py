"""Probes: measurements on training traces, per model or along training."""

from unlazy.probes.base import ModelProbe, Probe
from unlazy.probes.equal_bits import PartErrors, PartWeights, ScoreByOnes
from unlazy.probes.neurons import Alignment, Clusters, Kinks, SecondLayerSigns, Silhouette
from unlazy.probes.performance import Performance

__all__ = [
    "Alignment",
    "Clusters",
    "Kinks",
    "ModelProbe",
    "PartErrors",
    "PartWeights",
    "Performance",
    "Probe",
    "ScoreByOnes",
    "SecondLayerSigns",
    "Silhouette",
]
