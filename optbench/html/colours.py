"""Colours of groups of tasks (paler at lower clocks), of pools and of solvers."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Sequence

import numpy as np

from optbench.model.instance import Instance, Ints

# Middle tones, on which dark text is readable on light and dark pages.
TASKS = (
    "#7aaefc",
    "#6fd3a8",
    "#f5b86c",
    "#ea97b7",
    "#b6a0fb",
    "#68d0d8",
    "#efd268",
    "#fb9886",
    "#a9d272",
    "#cdb49f",
)
POOLS = ("#4a86e8", "#1fa98a", "#e08a3c", "#b565a7", "#7f70e6", "#8d9b2f", "#3aa0b8", "#c9584c")
SOLVERS = ("#3f7fe0", "#e07b39", "#1f9e83", "#b455a0", "#7a6ae0", "#8b8f2a")
# Lightness and saturation of further hues: pale ones behind text, deep ones for lines and marks.
PALE, DEEP = (0.7, 0.6), (0.5, 0.55)
# Share of a task's colour that is left at clock 0.
PALEST = 0.25
# With more groups than this, a legend is unreadable.
MOST_GROUPS = 60
UNNAMED = re.compile(r"k\d+")  # what the builder calls a kind given by its modes alone
GOLDEN = 0.618033988749895


def colour(row: Sequence[str], k: int, tone: tuple[float, float] = PALE) -> str:
    """The k-th colour; past the end of the row, hues apart by the golden section."""
    if k < len(row):
        return row[k]
    parts = colorsys.hls_to_rgb((k * GOLDEN) % 1.0, *tone)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def solver(k: int) -> str:
    """The colour of the k-th solver, in every chart."""
    return colour(SOLVERS, k, DEEP)


def shade(hex_colour: str, clock: float) -> str:
    """The colour at a clock (a fraction of the top one, or NaN); it is paler at lower clocks."""
    share = 1.0 if np.isnan(clock) else PALEST + (1 - PALEST) * min(1.0, clock)
    parts = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in parts)


def groups(instance: Instance) -> tuple[Ints, tuple[str, ...]]:
    """Group of each task and the groups' names.

    Groups are the part before the slash in names such as ``speech/train``; else the names without
    their numbers (``train7``); else kinds where there are three or more; else connected parts of
    the task graph (the jobs of a job shop); else every task is a group.
    """
    n = instance.num_tasks
    names = [instance.tasks.name(i) for i in range(n)]
    kinds = [kind_label(instance, i) for i in range(n)]
    for labels, least in (
        ([name.rpartition("/")[0] for name in names], 2),
        ([name.rstrip("0123456789._-") for name in names], 2),
        (kinds, 3),
        ([f"job {k + 1}" for k in components(instance)], 2),
        (kinds, 2),
    ):
        found = dict.fromkeys(labels)
        if least <= len(found) <= MOST_GROUPS and len(found) < n:
            number = {label: k for k, label in enumerate(found)}
            return np.asarray([number[label] for label in labels], dtype=np.int64), tuple(
                label or "other" for label in found
            )
    return np.arange(n), tuple(names)


def kind_label(instance: Instance, task: int) -> str:
    """The name of a task's kind of work without the suffix of the builder; empty if it has none."""
    name = instance.modes.kind_names[int(instance.tasks.kind[task])].partition("/")[0]
    return "" if UNNAMED.fullmatch(name) else name


def components(instance: Instance) -> list[int]:
    """Connected parts of the task graph, numbered by their first task."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    source, target = instance.edges.source, instance.edges.target
    shape = (instance.num_tasks, instance.num_tasks)
    found = connected_components(
        coo_array((np.ones(len(source)), (source, target)), shape), directed=False
    )[1]
    number: dict[int, int] = {}
    return [number.setdefault(label, len(number)) for label in found.tolist()]
