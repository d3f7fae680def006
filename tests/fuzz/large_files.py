"""Files of several MB of every kind, to be damaged: time and memory must stay near the file's."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import optbench as ob
from optbench.plugins.schedule_shape import shape_of
from optbench.plugins.shape_files import instance_text
from optbench.shapes.milp.lp_writer import write_lp
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.milp.mps_writer import write_mps
from optbench.shapes.milp.program import Milp, milp
from tests.fuzz.shape_damage import Kind, Originals

COLUMNS, TASKS, SERVICES = 30_000, 50_000, 300_000


def wide_programme() -> Milp:
    """A covering problem with three entries per column; all columns at 4 cover every row."""
    rng = np.random.default_rng(0)
    rows = COLUMNS // 10
    entries = (
        rng.integers(0, rows, 3 * COLUMNS),
        np.repeat(np.arange(COLUMNS), 3),
        rng.uniform(0.5, 2.0, 3 * COLUMNS).round(3),
    )
    names = [f"x{j}" for j in range(COLUMNS)]
    cost = rng.uniform(1.0, 9.0, COLUMNS).round(3)
    whole = np.arange(COLUMNS) % 2 == 0
    sides = np.zeros(COLUMNS), np.full(COLUMNS, 4.0)
    labels = [f"r{i}" for i in range(rows)]
    least, most = np.ones(rows), np.full(rows, np.inf)
    return milp("wide", "min", names, cost, *sides, whole, labels, least, most, entries)


def many_tasks() -> ob.Instance:
    """Tasks on one pool."""
    m = ob.Model("many")
    gpu = m.pool("gpu", count=50)
    lengths = np.random.default_rng(0).integers(1, 99, TASKS).astype(float)
    m.tasks(lengths, kind=m.kind(modes=[m.mode(gpu, time_s=1.0)]))
    m.minimize(makespan_s=1.0)
    return m.build()


def many_services() -> Any:
    """Services that all fit onto the first GPU."""
    shape: Any = shape_of(ob.load_problem("packing:services=4").instance(0))
    memory = np.random.default_rng(1).integers(1, 9, SERVICES).astype(float).tolist()
    return shape.instance("large", shape.data(tuple(memory), (1e7, 40.0), (0.5, 1.1)))


class LargeOriginals(Originals):
    """The same kinds of files, large."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.decisions = folder, folder / "out.json", {}

    def large(self, name: str) -> Kind:
        """One kind; contents are not compared: a second reading of MBs takes its own time."""
        text = self._text(name)
        kind = next(each for each in self.kinds() if each.name == name)
        return replace(kind, original=lambda seed: text, wrong=lambda *_: None)

    def _text(self, name: str) -> str:
        if name == "mps":
            return write_mps(wide_programme())
        if name == "lp":
            return write_lp(wide_programme())
        programme: Any = MILPS.instance(wide_programme())
        if name in ("schedules", "packing", "milp"):
            if name == "milp":
                return instance_text(programme)
            return instance_text(many_tasks() if name == "schedules" else many_services())
        if name == "schedule":
            instance: Any = many_tasks()
            decision: Any = ob.solve(instance, "fcfs", bound=False).schedule
            owners: tuple[str, ...] = ("dag", "shop")
        elif name == "placement":
            instance, owners = many_services(), ("packing",)
            decision = instance.shape.solution((0,) * SERVICES)
        else:
            instance, owners, decision = programme, ("programme",), (Fraction(4),) * COLUMNS
        for owner in owners:
            ob.write_instance(instance, self.folder / f"{owner}.json")
        ob.write_decision(decision, self.folder / "one.json", instance)
        return (self.folder / "one.json").read_text()
