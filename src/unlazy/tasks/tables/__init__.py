"""Tables: files that hold them, what can be asked of them, the UCI tables with their published
folds, and rows as a family.
"""
