"""Errors, naming, random numbers, losses, metrics and activations, used by all other layers."""
