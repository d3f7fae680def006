"""Readers of published instance formats and recorded runs; a file's content decides its format."""
