"""Compiled simulation and search: the event kernel, policies for sites, and heuristics."""
