"""What of `tf.contrib` no maintained package has any more."""
