"""The recommender beside the same model by hand: `python -m benchmarks.clicks`."""
