"""Self-contained HTML pages: their frame, axes, charts and tables, shared by every page of optbench."""
