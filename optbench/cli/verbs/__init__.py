"""Verbs: each module has SUMMARY, EXAMPLES, ``configure(parser)`` and ``run(args) -> exit code``."""
