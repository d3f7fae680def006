"""Importers of published instance formats, chosen by what a file contains, never by its name."""

from optbench.model.formats.registry import FORMATS, Format, convert, detect, load, parse

__all__ = ["FORMATS", "Format", "convert", "detect", "load", "parse"]
