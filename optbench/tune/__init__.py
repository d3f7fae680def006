"""Optuna searches over the parameters of solvers: trials, workers, validation and their page."""
