"""Writes a report of runs, side by side, as one HTML file that loads no other files."""
