"""Layerwise learning of Boolean circuits (malach2019, Algorithm 1)."""
