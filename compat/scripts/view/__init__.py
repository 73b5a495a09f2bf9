"""The modules and builtins that a script sees: `tensorflow`, NumPy, others, and its own `import`.

`namespace` builds the `tensorflow` that a script imports, from `tf.compat.v1` and the table in
`names`. `imports` shows it to the script's own modules only.
"""
