"""Updates that a worker makes of its own, between two messages to the parameter servers."""
