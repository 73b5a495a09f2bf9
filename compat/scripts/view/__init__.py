"""The modules and builtins that a script sees: `tensorflow`, NumPy, others, and its own `import`.

`namespace` builds the `tensorflow` module that a script imports, from `tf.compat.v1` and the table
in `names`. `imports` provides it to the modules of the script only.
"""
