"""Importers of published instance formats and of recorded runs, chosen by what a file contains, never by its name."""
