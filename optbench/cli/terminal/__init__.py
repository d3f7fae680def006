"""Modules that verbs share: arguments, progress lines, output and exit codes."""
