"""Whether the other tasks are there: waiting for them, watching them, and the end of the run."""
