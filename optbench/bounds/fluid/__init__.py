"""The fluid relaxation of a task schedule: shares of tasks instead of starts."""
