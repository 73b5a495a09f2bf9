"""What TensorFlow 1.x was used for, a program each, in its style."""
