"""Rules for names: what is imported, and what has another name today or none."""
