"""What the old API is mapped onto: the interface of a runtime, and the two that implement it."""
