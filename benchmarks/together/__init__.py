"""Updates that all workers make together, by the package and beside it."""
