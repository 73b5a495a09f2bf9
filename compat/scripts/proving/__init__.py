"""`python -m compat prove`: runs a program twice, and reports where the two runs first differ.

Each run is a process under `recorder`. The other modules compare the records of both runs, and do
not load TensorFlow.
"""
