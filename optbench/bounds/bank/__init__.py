"""Bounds kept on disk with what proves them."""
