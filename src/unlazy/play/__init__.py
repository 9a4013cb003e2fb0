"""The live page: training that can be watched, stopped, wound back, changed and shared."""
