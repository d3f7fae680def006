"""Executors run jobs in processes of their own, within limits, and report what became of each."""
