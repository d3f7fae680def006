"""The files of a run: the cell's own, charts of its schedule and power, the study's page."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.evaluate.rows import Table
from optbench.evaluate.scores import ranked
from optbench.model.instance import Instance
from optbench.model.result import Bound, Result, TrajectoryPoint
from optbench.shapes.protocol.shape import Decision
from optbench.store.records import Record
from optbench.store.run_store import Store

# The schedule is drawn for instances with up to this many tasks.
MOST_TASKS = 3000
KEPT = ("schedule.json", "decision.json", "trajectory.json", "output.txt")
# Columns of solvers.csv.
HEADS = (
    "solver",
    "cells",
    "ran",
    "failed",
    "optimal_share",
    "mean_study_gap",
    "study_gap_low",
    "study_gap_high",
    "mean_gap",
    "rank",
)


def cell_files(record: Record, store: Store, folder: Path) -> None:
    """Write record, schedule or decision, trajectory, output, and the charts of a schedule."""
    (folder / "record.json").write_text(json.dumps(record.to_dict(), indent=1), encoding="utf-8")
    kept = store.cell(record.key)
    for name in KEPT:
        if (kept / name).is_file():
            shutil.copyfile(kept / name, folder / name)
    if record.failed or record.objective is None or not (folder / "schedule.json").is_file():
        return
    if not store.instance_file(record.cell.instance_hash).is_file():
        return
    instance = store.instance(record.cell.instance_hash)
    if instance.num_tasks <= MOST_TASKS:
        _draw(record, instance, folder)


def _draw(record: Record, instance: Instance, folder: Path) -> None:
    from optbench.html.schedule_page import render
    from optbench.model.files.schedule_json import read_schedule

    schedule = read_schedule(folder / "schedule.json", instance)
    page = render(instance, [as_result(record, schedule, folder)], record.cell.title)
    (folder / "gantt.html").write_text(page, encoding="utf-8")
    if record.metrics.get("energy_j", 0.0) > 0:
        power_file(instance, schedule, folder / "power.csv")


def power_file(instance: Instance, schedule: Decision, path: Path) -> None:
    """Write the power of each pool, busy and idle, between changes."""
    from optbench.model.metrics import power_trace

    trace = power_trace(instance, schedule)
    total = trace.busy_w + trace.rest_w
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["t_s", "power_w", *(f"{name}_w" for name in instance.pools.names)])
        seconds = trace.t * instance.tick_s
        for k, t in enumerate(seconds[:-1]):
            writer.writerow([f"{value:.10g}" for value in (t, total[:, k].sum(), *total[:, k])])
        writer.writerow([f"{seconds[-1]:.10g}", *["0"] * (1 + len(total))])


def as_result(record: Record, schedule: Decision | None, folder: Path) -> Result:
    """Return a record as the result that the page takes."""
    cell = record.cell
    known = {field.name for field in fields(TrajectoryPoint)}
    trajectory = folder / "trajectory.json"
    points = json.loads(trajectory.read_text()) if trajectory.is_file() else []
    values: dict[str, Any] = {
        field.name: getattr(record, field.name)
        for field in fields(Result)
        if hasattr(record, field.name)
    }
    values["infeasibility"] = None
    values |= {
        "instance": cell.instance,
        "instance_hash": cell.instance_hash,
        "problem": cell.target,
        "solver": cell.label,
        "seed": cell.seed,
        "threads": cell.budget.threads,
        "bounds": tuple(Bound(**each) for each in record.bounds),
        "metrics": dict(record.metrics),
        "wall_s": record.wall_s or 0.0,
        "trajectory": tuple(
            TrajectoryPoint(**{key: row[key] for key in row if key in known}) for row in points
        ),
        "schedule": schedule,
    }
    return Result(**values)


def study_files(joined: Table, store: Store, folder: Path) -> None:
    """Write the report, the plan, the current study file, and one line per solver."""
    from optbench.report.study_page import write_report

    plan = joined.plan
    try:
        write_report(plan, store, folder / "report.html", linked=False)
    except OptbenchError as error:  # the study file has changed since; the runs are sent anyway
        (folder / "report.txt").write_text(f"no report: {error}\n", encoding="utf-8")
    (folder / "plan.json").write_text(json.dumps(plan.to_dict(), default=str), encoding="utf-8")
    if plan.study.path is not None and plan.study.path.is_file():
        shutil.copyfile(plan.study.path, folder / "study.toml")
    with (folder / "solvers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADS)
        for each in ranked(joined):
            found = each.study_gap
            ends = (found.low, found.high) if found is not None and found.known else ("", "")
            gap = "" if each.gap is None else each.gap.value
            study_gap = "" if found is None else found.value
            counts = (each.planned, each.ran, each.failed, each.optimal_share)
            writer.writerow([each.label, *counts, study_gap, *ends, gap, each.rank])
