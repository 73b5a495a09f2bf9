"""Records the training calls of a program, on TensorFlow 0.12 to the newest.

It is loaded by the Python that runs the program, where this project may not be installed: so it is
written for Python 2.7 as well, and imports nothing but Python, NumPy and TensorFlow.
"""
