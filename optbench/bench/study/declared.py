"""What a study file says, after reading: problems × solvers × seeds under budgets, gates, claims."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

# A cell is killed when it is still at work so long after its time limit: verification, bounding of later levels and loading
# take some of it, a solver that does not look at the clock the rest.
GRACE_SHARE, GRACE_S = 0.5, 15.0
# The hard limit where a study gives a cell no time limit.
LONGEST_S = 3600.0
# Processes and threads of one cell, so that a fork bomb ends soon.
MAX_PROCESSES = 256


@dataclass(frozen=True)
class CellBudget:
    """What one cell may use. The solver is told its time and work limits and threads; the others are enforced on its whole
    process tree, and None means: derived from the time limit, or what the machine has."""

    time_limit_s: float | None = 60.0
    work_limit: float | None = None
    threads: int = 1
    wall_limit_s: float | None = None
    cpu_limit_s: float | None = None
    memory_limit_mb: float | None = None
    max_processes: int = MAX_PROCESSES

    @property
    def hard_wall_s(self) -> float:
        """Seconds after which the cell is killed."""
        if self.wall_limit_s is not None:
            return self.wall_limit_s
        return LONGEST_S if self.time_limit_s is None else self.time_limit_s * (1 + GRACE_SHARE) + GRACE_S


@dataclass(frozen=True)
class SolverEntry:
    """One configuration of a solver: a column of the study. ``params`` are typed values, as its class holds them."""

    label: str
    name: str
    params: Mapping[str, Any]
    budget: CellBudget


@dataclass(frozen=True)
class Claim:
    """A published figure and the expression that gives ours; ``better`` says which way is good, ``tolerance`` is relative."""

    text: str
    source: str
    paper: float
    ours: str
    better: Literal["lower", "higher"] = "lower"
    tolerance: float = 0.1
    bound: str | None = None


@dataclass(frozen=True)
class Study:
    """A study file. ``problems`` are targets with their grids written out, ``solvers`` configurations likewise."""

    name: str
    question: str
    problems: tuple[str, ...]
    solvers: tuple[SolverEntry, ...]
    seeds: tuple[int, ...] = (0,)
    repetitions: int = 1
    bound_limit_s: float = 10.0
    metrics: tuple[str, ...] = ()
    gates: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    tune: Mapping[str, Any] | None = None
    path: Path | None = None

    @property
    def config_hash(self) -> str:
        """Of what decides the cells: the same configuration continues the same parent run."""
        content = {
            "problems": self.problems,
            "solvers": [asdict(entry) for entry in self.solvers],
            "seeds": self.seeds,
            "repetitions": self.repetitions,
            "bound_limit_s": self.bound_limit_s,
        }
        return hashlib.sha256(canonical(content).encode()).hexdigest()


def canonical(value: Any) -> str:
    """One text per value: sorted keys, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
