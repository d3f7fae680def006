"""The page on one instance: its devices, its kinds of work, its limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optbench.html import colours
from optbench.html.captions import instance_facts, number
from optbench.html.page import footer, header, machine_facts, note, page, section, text_table
from optbench.html.quantities import amount, clock
from optbench.model.instance import Instance

if TYPE_CHECKING:
    from optbench.model.builder import Model

# Rows shown of a table; a note says how many are left out.
MOST_ROWS = 40


def page_of_instance(instance: Instance) -> str:
    body = [
        header(instance.name, *instance_facts(instance)),
        *instance_sections(instance),
        footer(*machine_facts(), f"instance {instance.hash[:12]}"),
    ]
    return page(instance.name, body)


def page_of_model(model: Model) -> str:
    """The page of the instance that the model declares."""
    return page_of_instance(model.build())


def instance_sections(instance: Instance) -> list[str]:
    """Devices, work, and what holds for the whole instance."""
    return [_devices(instance), _work(instance), _conditions(instance)]


def pool_section(model: Model) -> str:
    """The pools that a model declares."""
    rows = [
        (
            pool.name,
            model.place_names[pool.place],
            f"{pool.count:,}",
            amount(pool.sleep_w if pool.sleeps else pool.idle_w, "W"),
            _memory(pool.memory_gb),
        )
        for pool in model.pools
    ]
    return _device_section(rows)


def _devices(instance: Instance) -> str:
    pools, places = instance.pools, instance.places.names
    rows = [
        (
            pools.names[k],
            places[int(pools.place[k])],
            f"{int(pools.count[k]):,}",
            amount(float(pools.rest_w[k]), "W"),
            _memory(float(pools.memory_gb[k])),
        )
        for k in range(instance.num_pools)
    ]
    return _device_section(rows)


def _device_section(rows: Sequence[tuple[str, ...]]) -> str:
    heads = ("pool", "place", "devices", "power at rest, each", "memory, each")
    return section("Devices", _table(heads, rows, len(rows), words=(0, 1))) if rows else ""


def _work(instance: Instance) -> str:
    """A row per group of tasks; the groups are those of the Gantt chart's colours."""
    tasks, modes = instance.tasks, instance.modes
    group, names = colours.groups(instance)
    rows = []
    for k in range(min(len(names), MOST_ROWS)):
        members = np.flatnonzero(group == k)
        kinds = np.unique(tasks.kind[members])
        own = np.isin(modes.kind, kinds)
        units = tasks.units[members].sum()
        rows.append(
            (
                names[k],
                f"{len(members):,}",
                number(float(units)),
                _span(np.diff(modes.kind_ptr)[kinds].tolist(), ""),
                _span(modes.time_per_unit_s[own].tolist(), "s"),
                _span(modes.energy_per_unit_j[own].tolist(), "J"),
            )
        )
    heads = ("work", "tasks", "units", "modes of a task", "time per unit", "energy per unit")
    return section("Work", _table(heads, rows, len(names), words=(0,)))


def _conditions(instance: Instance) -> str:
    """What else holds, one row each."""
    tasks, limits = instance.tasks, instance.limits
    rows = [("tick", f"{instance.tick_s:g} s")]
    if instance.horizon is not None:
        rows.append(("horizon", f"{number(instance.horizon * instance.tick_s)} s"))
    if instance.preemptive:
        rows.append(("tasks", "may be interrupted"))
    dated = int(np.isfinite(tasks.deadline).sum())
    if dated:
        hard = int((np.isfinite(tasks.deadline) & tasks.deadline_hard).sum())
        rows.append(("deadlines", f"{dated:,}, of which {hard:,} are hard"))
    if (np.asarray(tasks.release) > 0).any():
        last = float(np.max(tasks.release)) * instance.tick_s
        rows.append(("releases", f"until {number(last)} s"))
    for place, cap_w in zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True):
        rows.append(("power cap", f"{amount(cap_w, 'W')} at {instance.places.names[place]}"))
    rows += [(f"limit on {name}", number(most)) for name, most in limits.metric_max.items()]
    if instance.tariffs is not None:
        rows.append(("prices and carbon", "change in time or between places"))
    if instance.problem is not None:
        rows.append(("made by", instance.problem))
    return section("Conditions", _table(("condition", "value"), rows, len(rows), words=(0, 1)))


def _table(
    heads: Sequence[str], rows: Sequence[tuple[str, ...]], count: int, words: tuple[int, ...]
) -> str:
    """The first rows of a table of ``count`` rows."""
    shown = text_table(heads, rows[:MOST_ROWS], words=words)
    left = count - MOST_ROWS
    return shown + (note(f"{left:,} more rows are not shown") if left > 0 else "")


def _memory(gigabytes: float) -> str:
    return f"{gigabytes:g} GB" if math.isfinite(gigabytes) else "no limit"


def _span(values: Iterable[float], unit: str) -> str:
    """Least and most: ``3 s``, ``45 s to 12:30``, ``1.2 J to 40 kJ``."""
    finite = sorted(set(values))
    if not finite:
        return "-"
    ends = finite[0], finite[-1]
    low, high = (clock(each) if unit == "s" else amount(each, unit) for each in ends)
    return low if low == high else f"{low} to {high}"
