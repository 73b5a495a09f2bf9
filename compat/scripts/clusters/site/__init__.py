"""A folder on PYTHONPATH of a script's child processes; see `compat.scripts.clusters.inherited`."""
