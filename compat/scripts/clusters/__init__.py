"""The clusters of scripts: addresses, servers, sessions, child processes and records."""
