"""Servers, sessions and local clusters for scripts that run under `compat run`."""
