"""Runs a program of TensorFlow 1.x, one graph and its sessions, on either runtime."""
