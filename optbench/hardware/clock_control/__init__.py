"""Locked clocks that are always restored: plans, the journal, the watchdog, the restoration."""
