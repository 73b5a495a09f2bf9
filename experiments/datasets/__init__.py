"""Clicks for the recommender: in Criteo's format, or made up from known probabilities."""
