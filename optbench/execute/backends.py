"""The names of the engines, which the command line shows without importing any."""

from __future__ import annotations

from typing import Literal

Backend = Literal["local", "ray"]
BACKENDS: tuple[Backend, ...] = ("local", "ray")
EVERY_CPU = "as many as the cluster has CPUs"
NAME_HELP = "where cells run: local, this machine (default), or ray, the nodes of a Ray cluster"
ADDRESS_HELP = "of the Ray cluster (default $RAY_ADDRESS, else the one that runs on this machine)"
