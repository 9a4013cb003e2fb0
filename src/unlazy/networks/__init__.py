"""Networks as callable pytrees `model(x) -> scores`, whose fields are named parameter groups."""

from unlazy.networks.adapters import ModuleInit, ModuleNetwork
from unlazy.networks.base import (
    HasNeurons,
    Init,
    Model,
    Network,
    OnCoordinates,
    Predictor,
    Rotatable,
    Scores,
    Smoothable,
    SplitWeights,
)
from unlazy.networks.convolutional import Convolutional, ConvolutionalInit
from unlazy.networks.inits import (
    AntisymmetricInit,
    PlainInit,
    ResNetInit,
    SignedInit,
    SphereInit,
    TangentInit,
    TernaryInit,
)
from unlazy.networks.linearized import Linearized
from unlazy.networks.residual import ALL, HIDDEN, ThreeLayer, ThreeLayerResNet
from unlazy.networks.two_layer import TwoLayer

__all__ = [
    "ALL",
    "HIDDEN",
    "AntisymmetricInit",
    "Convolutional",
    "ConvolutionalInit",
    "HasNeurons",
    "Init",
    "Linearized",
    "Model",
    "ModuleInit",
    "ModuleNetwork",
    "Network",
    "OnCoordinates",
    "PlainInit",
    "Predictor",
    "ResNetInit",
    "Rotatable",
    "Scores",
    "SignedInit",
    "Smoothable",
    "SphereInit",
    "SplitWeights",
    "TangentInit",
    "TernaryInit",
    "ThreeLayer",
    "ThreeLayerResNet",
    "TwoLayer",
]
