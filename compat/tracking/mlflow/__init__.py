"""MLflow runs, which a separate process sends to the server."""
