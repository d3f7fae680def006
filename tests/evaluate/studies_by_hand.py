"""Studies made by hand: a plan and its records, as small as a test needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optbench.model.measures import Value, gap
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.store.records import Reason, Record
from optbench.store.run_store import Store
from optbench.study.cells import BOUNDS, Cell
from optbench.study.declared import CellBudget, SolverEntry, Study
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan

BUDGET = CellBudget(time_limit_s=10.0)
MACHINE = {
    "host": "box",
    "system": "Linux x86_64",
    "cores": 2,
    "memory_gb": 8.0,
    "python": "3.11.7",
    "optbench": "0.1.0",
}


def study_of(
    labels: Sequence[str],
    instances: Sequence[str],
    seeds: Sequence[int] = (0,),
    levels: int = 1,
    budget: CellBudget = BUDGET,
    shape: ShapeFacts | None = None,
    **fields: Any,
) -> Plan:
    """A plan with one problem per instance name; the same name and seed are the same instance."""
    entries = tuple(SolverEntry(label, label.partition(":")[0], {}, budget) for label in labels)
    study = Study(
        **{
            "name": "by_hand",
            "question": "Which?",
            "problems": tuple(instances),
            "solvers": entries,
            **fields,
        }
    )
    made = tuple(
        MadeInstance(name, seed, f"{name}-{seed}", f"hash-{name}-{seed}", levels, shape=shape)
        for name in instances
        for seed in seeds
    )
    cells = [
        _cell("bound", each, BOUNDS, CellBudget(time_limit_s=1.0)) for each in made if levels == 1
    ]
    cells += [_cell("solve", each, label, budget) for each in made for label in labels]
    return Plan(study, made, tuple(cells))


def _cell(kind: Any, made: MadeInstance, label: str, budget: CellBudget) -> Cell:
    name = label.partition(":")[0]
    params = {"label": label} if ":" in label else {}
    assert made.instance_hash is not None
    return Cell(
        kind,
        made.target,
        made.name,
        made.instance_hash,
        made.seed,
        label,
        name,
        params,
        "",
        made.seed,
        budget,
        shape=None if made.shape is None else made.shape.of_cell,
    )


def record(
    cell: Cell, objective: Value | None = None, bound: Value | None = None, **fields: Any
) -> Record:
    """What a cell came to; bounds are its own: certified those of the bounding, a solver's all
    others.
    """
    lows = bound if isinstance(bound, tuple) else (bound,)
    proof = "combinatorial" if cell.kind == "bound" else "solver"
    entries = tuple(
        bound_row(low, cell.label, level, proof)
        for level, low in enumerate(lows)
        if low is not None
    )
    values = objective if isinstance(objective, tuple) else (objective,)
    gaps = tuple(gap(value, low) for value, low in zip(values, lows, strict=False))
    whole: Any = None if None in gaps else gaps[0] if len(gaps) == 1 else gaps
    base = {
        "status": "unknown" if objective is None else "feasible",
        "termination": "finished",
        "objective": objective,
        "bound": bound,
        "bounds": entries,
        "gap": whole,
        "verified": objective is not None,
        "wall_s": 1.0,
        "machine": MACHINE,
        "code_version": "0.1.0+abc",
        "began_at": "2026-11-18T12:00:00.000+00:00",
        "labelled": True,
    }
    return Record(cell, **{**base, **fields})


def bound_row(
    value: float, source: str, level: int = 0, proof: str = "solver"
) -> Mapping[str, Any]:
    return {"value": value, "source": source, "proof": proof, "level": level}


def failure(cell: Cell, kind: str, message: str = "why", **fields: Any) -> Record:
    return record(
        cell,
        status="error",
        termination="crashed",
        reason=Reason(kind, message),
        wall_s=None,
        **fields,
    )


def records_of(plan: Plan, results: Mapping[tuple[str, str], Any]) -> dict[str, Record]:
    """Records by key. ``results[label, instance]`` is (objective, bound), a record's maker, or
    missing: not run.
    """
    out = {}
    for cell in plan.cells:
        given = results.get((cell.label, cell.instance))
        if given is not None:
            out[cell.key] = given(cell) if callable(given) else record(cell, *given)
    return out


def stored(
    folder: Path, records: Mapping[str, Record], outputs: Mapping[str, str] | None = None
) -> Store:
    """A store that holds these records, and what their cells wrote."""
    store = Store(folder / ".optbench").make()
    for record in records.values():
        text = (outputs or {}).get(record.key)
        store.add(record, {} if text is None else {"output.txt": text.encode()})
    return store
