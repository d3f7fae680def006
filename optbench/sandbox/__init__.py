"""Confinement of untrusted code: Landlock, seccomp, resource limits and process trees."""
