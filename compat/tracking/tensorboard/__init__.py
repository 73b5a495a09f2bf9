"""Event files of TensorBoard, written without TensorFlow."""
