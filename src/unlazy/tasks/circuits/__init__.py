"""Boolean circuits: trees of gates, laws of their inputs, and all that can be computed of them
exactly.
"""
