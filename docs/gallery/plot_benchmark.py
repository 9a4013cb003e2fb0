"""
A contest of two kernels and a linear model
===========================================

The product of two hidden signs: the linear model cannot express it, and the kernels differ in how
many examples they need.
"""

import unlazy

outcome = unlazy.compare(
    "parity",
    ["linear", "rbf", "quadratic"],
    n=(30, 100, 300),
    seeds=3,
    budget=4,
    test=2000,
    set=["d=12"],
)
for n in outcome.sizes:
    print(outcome.conclusion(n))

# %%
# Means over seeds with their intervals.

picture = outcome.figure()
