"""Policies that route arriving work to sites, on the compiled kernel."""
