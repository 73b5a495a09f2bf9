"""MLflow runs, sent by a process of their own."""
