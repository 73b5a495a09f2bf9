"""Classes of models as plain statements, of which steps are made."""
