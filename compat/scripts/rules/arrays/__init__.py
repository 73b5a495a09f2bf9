"""Rules for arrays of NumPy, which no import names."""
