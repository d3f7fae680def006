"""What verbs share: arguments, progress lines, output and exit codes."""
