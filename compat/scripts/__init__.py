"""Commands that run, check and convert scripts and checkpoints of TensorFlow 0.8 to 1.15.

`names.namespace` builds the `tensorflow` module that a script imports, from `tf.compat.v1` and the
table in `names`. `imports` shows it to the script's own modules only.
"""
