"""`python -m compat convert-checkpoint`: converts checkpoints and graphs of old programs."""
