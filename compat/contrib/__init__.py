"""Parts of `tf.contrib` that no maintained package provides."""
