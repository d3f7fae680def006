"""The shell command that repeats a solve."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from optbench.plugins.specs import as_text


def solve_command(
    target: str,
    solver: str,
    params: Mapping[str, Any],
    *,
    seed: int,
    instance_seed: int | None = None,
    time_limit_s: float | None = 60.0,
    work_limit: float | None = None,
    threads: int = 1,
) -> str:
    """Return ``optbench solve TARGET -s SOLVER ...``, quoted for a POSIX shell.

    ``instance_seed`` is given where the instance was made with another seed than the solver's.
    """
    words = ["optbench", "solve", target, "-s", solver]
    for name, value in params.items():
        words += ["-p", f"{name}={as_text(value)}"]
    words += ["--seed", str(seed)]
    if instance_seed is not None and instance_seed != seed:
        words += ["--instance-seed", str(instance_seed)]
    if time_limit_s is not None:
        words += ["--time-limit", f"{time_limit_s:.15g}s"]
    if work_limit is not None:
        words += ["--work-limit", f"{work_limit:.15g}"]
    if threads != 1:
        words += ["--threads", str(threads)]
    return shlex.join(words)
