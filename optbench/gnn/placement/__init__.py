"""Placement of the parts of a graph on unequal devices: tables, rules, searches, the MILP."""
