"""Runs programs: `main` with its exit codes, and child processes that start and end together."""
