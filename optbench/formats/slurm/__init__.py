"""Recorded runs of Slurm clusters, read from the output of sacct."""
