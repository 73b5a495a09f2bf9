"""Data of the programs: clicks in Criteo's format, read from files or made up by a law."""
