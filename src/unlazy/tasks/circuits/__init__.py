"""Boolean circuits: trees of gates, input distributions, and exact statistics."""
