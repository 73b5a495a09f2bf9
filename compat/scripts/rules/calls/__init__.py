"""Rules for calls whose arguments have another order, other names or another meaning today."""
