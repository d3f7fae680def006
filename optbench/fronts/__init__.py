"""Fronts between two metrics: their search, their certified floor and their page."""
