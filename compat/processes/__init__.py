"""Runs programs: `main` with its exit codes, child processes that end together, local clusters."""
