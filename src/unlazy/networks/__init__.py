"""Networks: callable pytrees `model(x) -> scores`, whose fields are the parameter groups that learners name."""

from unlazy.networks.base import HasNeurons, Init, Model, Network, OnCoordinates, Rotatable, Scores, Smoothable, SplitWeights
from unlazy.networks.inits import MirroredInit, PlainInit, ResNetInit, SphereInit, TangentInit
from unlazy.networks.linearised import Linearised
from unlazy.networks.residual import ALL, HIDDEN, ThreeLayerResNet
from unlazy.networks.two_layer import TwoLayer

__all__ = [
    "ALL",
    "HIDDEN",
    "HasNeurons",
    "Init",
    "Linearised",
    "MirroredInit",
    "Model",
    "Network",
    "OnCoordinates",
    "PlainInit",
    "ResNetInit",
    "Rotatable",
    "Scores",
    "Smoothable",
    "SphereInit",
    "SplitWeights",
    "TangentInit",
    "ThreeLayerResNet",
    "TwoLayer",
]
