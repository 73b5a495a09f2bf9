"""Programs of the kinds that TensorFlow 1.x was used for, in the style of that time."""
