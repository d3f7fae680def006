"""What every capable solver decides at a work limit, and what bounds the instance."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import optbench as ob
from tests.golden.commands import document, workspace
from tests.golden.optbench_access import load_target
from tests.golden.recording import Entry, Recording
from tests.golden.solver_cases import (
    LEFT_OUT,
    WORK_LIMITS,
    InstanceCase,
    instance_cases,
    sample_cases,
)

SEED = 3
# Long enough never to be the reason why bounding ends.
BOUNDING_S = 60.0


def schedule_hash(schedule: ob.Schedule | None) -> str | None:
    """Of all segments, in the order of tasks and starts."""
    if schedule is None:
        return None
    rows = np.stack([schedule.task, schedule.start, schedule.mode, schedule.end], axis=1).astype(
        np.int64
    )
    rows = rows[np.lexsort(rows.T[::-1])]
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()[:16]


def built_in_solvers() -> list[str]:
    """Those that every workspace has."""
    return [
        entry["name"] for entry in document(["list", "solvers"]) if entry["name"] not in LAB_SOLVERS
    ]


LAB_SOLVERS = ("always_crashes", "breaks_order", "is_interrupted", "never_finds")


def solved(instance: ob.Instance, solver: str) -> list[Any] | None:
    """Status, hash of the decision, objective and the solver's own bound; None where it refuses."""
    try:
        result = ob.solve(
            instance, solver, work_limit=WORK_LIMITS.get(solver, 1.0), seed=SEED, bound=False
        )
    except ob.UnsupportedError:
        return None
    return [
        result.status,
        schedule_hash(result.schedule),
        plain(result.objective),
        plain(result.bound),
    ]


def plain(value: Any) -> Any:
    """As JSON has it."""
    return (
        [float(each) for each in value]
        if isinstance(value, tuple)
        else value
        if value is None
        else float(value)
    )


def entry_of(case: InstanceCase, solvers: list[str]) -> Entry:
    instance = load_target(case.spec, case.seed)
    bounds = ob.bound(instance, time_limit_s=BOUNDING_S)
    return {
        "name": case.name,
        "hash": instance.hash,
        "bounds": [[each.level, each.source, each.proof, float(each.value)] for each in bounds],
        "runs": runs_of(case, instance, solvers),
    }


def runs_of(case: InstanceCase, instance: ob.Instance, solvers: list[str]) -> dict[str, Any]:
    """The runs of the solvers that take an instance."""
    runs = {name: solved(instance, name) for name in solvers if (name, case.spec) not in LEFT_OUT}
    return {name: run for name, run in runs.items() if run is not None}


def record_solvers(sample: bool = False) -> Recording:
    """Every instance with every solver that takes it."""
    cases = sample_cases() if sample else list(instance_cases())
    with workspace():
        solvers = built_in_solvers()
        return Recording([entry_of(case, solvers) for case in cases], [])


def with_runs(recorded: Recording, solvers: list[str]) -> Recording:
    """What is recorded, with the runs of these solvers made anew."""
    cases, entries = {case.name: case for case in instance_cases()}, []
    with workspace():
        for entry in recorded.entries:
            case = cases[entry["name"]]
            made = runs_of(case, load_target(case.spec, case.seed), solvers)
            runs = {name: run for name, run in entry["runs"].items() if name not in solvers} | made
            entries.append(entry | {"runs": dict(sorted(runs.items()))})
    return Recording(entries, recorded.texts)
