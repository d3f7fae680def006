"""A study made by hand, so that every figure is known: two solvers and the bounding of one
instance.
"""

from __future__ import annotations

import json
from dataclasses import replace

from optbench import api
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.study.cells import Cell
from optbench.study.declared import CellBudget, SolverEntry, Study
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan
from optbench.track.study_sync import Snapshot

TARGET, SEED = "gpu_dag:tasks=6,gpus=2", 3
BUDGET = CellBudget(time_limit_s=None, work_limit=10.0)
INSTANCE = api.load_target(TARGET, SEED)
SOLVED = api.solve(INSTANCE, "fcfs", bound=False)
LATER = "2026-11-18T11:00:00+00:00"


def entry(label: str) -> SolverEntry:
    return SolverEntry(label, label.partition(":")[0], {"k": 8} if ":" in label else {}, BUDGET)


STUDY = Study(
    "hand",
    "Which is shorter?",
    (TARGET,),
    (entry("fcfs"), entry("random_rules:k=8")),
    seeds=(SEED,),
)


def cell(label: str) -> Cell:
    one = entry(label)
    return Cell(
        "bound" if label == "bounds" else "solve",
        TARGET,
        INSTANCE.name,
        INSTANCE.hash,
        SEED,
        label,
        one.name,
        one.params,
        "c0de",
        SEED,
        BUDGET,
    )


PLAN = Plan(
    STUDY,
    (MadeInstance(TARGET, SEED, INSTANCE.name, INSTANCE.hash),),
    tuple(map(cell, ("bounds", "fcfs", "random_rules:k=8"))),
)


def record(label: str, objective: float | None, **changes: object) -> Record:
    made = Record(
        cell(label),
        status="feasible",
        termination="finished",
        objective=objective,
        verified=True,
        metrics={**SOLVED.metrics, "energy_j": 7.0, "makespan_s": 3.0},
        wall_s=2.0,
        total_s=2.5,
        time_to_first_s=0.5,
        peak_memory_mb=64.0,
        began_at="2026-11-18T10:00:00.250+00:00",
        machine={"host": "here"},
        code_version="0.1.0",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def bounding(value: float) -> Record:
    bounds = ({"value": value, "source": "hand", "proof": "combinatorial", "level": 0},)
    return record(
        "bounds", None, status="unknown", verified=False, bound=value, bounds=bounds, metrics={}
    )


def keep(store: Store) -> Snapshot:
    """The plan as a runner leaves it."""
    snapshot = Snapshot.of(STUDY.name, STUDY.config_hash, store)
    snapshot.path.parent.mkdir(parents=True, exist_ok=True)
    snapshot.path.write_text(json.dumps(PLAN.to_dict()))
    (snapshot.path.parent / "latest").write_text(snapshot.path.name)
    return snapshot
