"""Runs programs with exit codes, groups of child processes, and clusters on this machine."""
