"""The report of a study as one self-contained HTML page, and as plain data."""
