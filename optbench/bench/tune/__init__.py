"""Tuning: a study's Optuna search, whose trials are ordinary cells of the local store."""
