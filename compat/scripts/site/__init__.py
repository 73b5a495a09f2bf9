"""On PYTHONPATH of the processes that an old script starts; see `compat.scripts.children`."""
