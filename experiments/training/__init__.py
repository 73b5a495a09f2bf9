"""One training run: settings, model and steps, and the loop that runs them."""
