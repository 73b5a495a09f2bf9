"""The record of a run: its curves in TensorBoard and MLflow, and its files in the log folder."""
