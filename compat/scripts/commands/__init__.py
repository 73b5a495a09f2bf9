"""The commands for scripts: run, check, migrate, prove and serve, from `argv` to the exit code."""
