"""Certified lower bounds on the cut, the step and the energy of GNN training; the exact cut."""
