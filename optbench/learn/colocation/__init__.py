"""Estimators of co-location: what a policy expects of throughputs that it has not measured."""
