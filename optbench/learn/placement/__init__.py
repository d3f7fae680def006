"""Learned placement of parts on devices: a graph transformer, agents, and their training."""
