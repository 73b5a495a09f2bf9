"""A report of runs, side by side, as one HTML file that loads nothing."""
