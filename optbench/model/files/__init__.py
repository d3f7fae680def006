"""Native files: instances, schedules and results as JSON with published schemas."""
