"""Compiled search and, later, the event kernel."""
