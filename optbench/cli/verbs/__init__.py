"""Verbs: each module has DESCRIPTION, EXAMPLES, ``configure(parser)`` and ``run(args) -> exit
code``.
"""
