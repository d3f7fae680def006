"""Schedules of tasks on pools as a shape."""
