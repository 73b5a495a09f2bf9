"""A program as TensorFlow 1.x has it, one graph and its sessions, on either runtime."""
