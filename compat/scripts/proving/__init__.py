"""`python -m compat prove`: runs a program twice, and reports where the two first differ.

Each run is a process under `recorder`; the rest compares what they have recorded, and loads no
TensorFlow.
"""
