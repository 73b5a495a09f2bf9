"""Command lines, local clusters and signals."""
