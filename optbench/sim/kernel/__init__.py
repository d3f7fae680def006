"""The event kernel: compiled events and decisions over flat arrays; rules, policies and
environments all run on it.
"""
