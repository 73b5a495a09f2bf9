"""Rules for what is fixed in the text of a script, and differs between machines."""
