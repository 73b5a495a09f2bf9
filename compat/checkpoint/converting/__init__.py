"""`python -m compat convert-checkpoint`: checkpoints and graphs of old programs for new ones."""
