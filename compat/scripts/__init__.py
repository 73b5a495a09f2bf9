"""Commands for scripts of TensorFlow 0.8 to 1.15, and for the checkpoints that they left.

A script sees as `tensorflow` what `namespace` makes of `tf.compat.v1` and of the table in `names`;
`imports` sees to it that only the script's own modules do.
"""
