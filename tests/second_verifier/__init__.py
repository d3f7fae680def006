"""A second verifier, written from docs/formats.md alone: it reads the JSON files and imports
nothing of optbench.
"""
