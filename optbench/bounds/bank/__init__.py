"""Bounds kept on disk with their certificates."""
