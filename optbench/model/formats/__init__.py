"""Importers of published instance formats and of recorded runs, chosen by what a file contains, never by its name."""

from optbench.model.formats import sacct, wfformat
from optbench.model.formats.format_registry import FORMATS, Format, convert, detect, load, load_import, parse, parse_import
from optbench.model.formats.imported import Finding, Import, Options, Report

__all__ = [
    "FORMATS", "Finding", "Format", "Import", "Options", "Report", "convert", "detect", "load", "load_import", "parse",
    "parse_import", "sacct", "wfformat",
]
