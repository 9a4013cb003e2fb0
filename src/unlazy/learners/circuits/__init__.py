"""Layerwise learning of Boolean circuits: Algorithm 1, from statistics of its gates and as a
literal network.
"""
