"""Records the training calls of a program, on TensorFlow 0.12 to the newest.

The Python that runs the program loads this package. This project may not be installed there, so the
package is also valid Python 2.7, and imports nothing but Python's library, NumPy and TensorFlow.
"""
