"""Clusters, servers and sessions of scripts."""
