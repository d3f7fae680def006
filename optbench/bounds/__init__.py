"""Certified lower bounds: combinatorial ones, a fluid linear programme proved again in exact
arithmetic, and a bank of both.
"""
