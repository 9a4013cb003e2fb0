"""
Compare two kernels and a linear model
======================================

Compare learners on the parity of two hidden coordinates. The linear model cannot represent it, and
the kernels differ in the number of examples that they need.
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
# Means over seeds with 95 % confidence intervals.

figure = outcome.figure()
