"""Rules for what a script of Python 2 means, once its syntax is that of Python 3."""
