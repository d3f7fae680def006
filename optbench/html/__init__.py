"""Self-contained HTML pages: their parts, axes, charts and tables, for every page of optbench."""
