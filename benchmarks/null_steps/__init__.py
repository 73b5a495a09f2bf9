"""Steps that compute nothing, and a model of their cost: `python -m benchmarks.null_steps`."""
