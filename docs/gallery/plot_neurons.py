"""
Draw the directions of neurons
==============================

Draw the neurons of a network at initialization, after one and two steps, and at the end. After one
step with full weight decay, the nearest neuron has a cosine close to 1 with the hidden direction;
the second layer needs the further steps. Each panel has its own plane and scale.
"""

from unlazy import Alignment, LocalEngine, ParityMixture, Performance, Trial
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.probes.neurons import Silhouette
from unlazy.report.figures import draw
from unlazy.report.neurons import neuron_plot

family = ParityMixture(d=40, D=20, k=3, po=0.5)
moments = family.moments
schedule = TwoStep.practical(
    k=3, m=30, T=100, gamma=float(moments.gamma), sigma=float(moments.sigma), batch=200
)
learner = schedule.network(record=(0, 1, 2))

# %%
# A trial is a family, a learner, a number of examples, a seed, and probes.

(record,) = LocalEngine().run(
    [Trial(family, learner, 3000, 10, (Performance(2000), Alignment(), Silhouette(60)))]
)
for step, accuracy, cosine in zip(
    record.steps, record.measurements["test_accuracy"], record.measurements["cosine"], strict=True
):
    print(f"step {step:3d}: test accuracy {accuracy:5.1f} %, maximum cosine {cosine:.3f}")

# %%
# Stars: the hidden direction and its opposite.

figure = draw(neuron_plot(record))
