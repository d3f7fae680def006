"""Shapes declared as a Pyomo model."""
