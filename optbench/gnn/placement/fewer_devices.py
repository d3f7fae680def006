"""Placements that leave devices out, for searches that cannot see what that saves.

A search moves one part at a time, and adding up gradients over the slowest link in use takes as
long until the last part has left its device. So the searches run on sets S of devices, on tables
that hold nothing else. With weights a_p > 0 of the parts and c_dw = min_p work_pdw / a_p, the parts
on a device d weigh at most load_wd / c_dw, all of them A = Σ_p a_p, and one device has each part:

    step ≥ mean_w max(A / Σ_{d in S} 1 / c_dw, max_p min_{d in S} work_pdw) + reduce_S

for every placement that uses exactly S. Loads of a placement within S are those of the same one on
more devices, so that leaving devices out saves at most the difference of ``reduce``.

``search_on_fewer`` places all parts by the tuned rule on all devices, then without one of them:

    those at the ends of the slowest link, or of the longest latency, in use, and the one that is
    slowest in computing

goes on from the best of these sets as long as the rule's placement is hardly worse than the best
one, and lets the search run on the sets where it is near the best. Sets whose bound is not below
the best step are left out, and so are all but the best one where there is no time to search more of
them well. Where leaving devices out can save next to nothing, or where the time is
over before the rule has placed on another set, the search runs on all devices, as if alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_planner import TimeLeft, placement_key
from optbench.gnn.placement.placement_search import TUNED_WEIGHTS, construct, work_order
from optbench.gnn.placement.placement_table import PlacementTable
from optbench.shapes.gnn_training.training_data import Ints

# A search that places a table on all of its devices.
Search = Callable[[PlacementTable, TimeLeft], Ints]
# What leaving devices out must be able to save, as a share of the step.
LEAST_SAVING = 0.005
# How much worse than the best the rule may place on a set: to go on from it, and to search on it.
GO_ON, SEARCH_ON = 1.25, 1.05
# The most sets of two and more devices that are searched, and the share of the time for choosing.
MOST_SETS, CHOICE_SHARE = 3, 0.1
# Trials of annealing for each part that a second set must leave the first one, and about how many
# operations a second takes.
TRIALS_PER_PART, OPERATIONS_PER_S = 8_000, 1e9
# Where there is time for one set, what leaving devices out must be able to save.
SAVING_IN_HASTE = 0.04
# Bounds give way to rounding.
ROUNDING = 1e-9


def restricted(table: PlacementTable, devices: Ints) -> PlacementTable:
    """Return the table of the same parts on some of the devices."""
    chosen = np.ix_(devices, devices)
    return replace(
        table,
        work_s=table.work_s[:, devices],
        gb_per_s=table.gb_per_s[chosen],
        latency_s=table.latency_s[chosen],
        memory_bytes=table.memory_bytes[devices],
    )


class StepBounds:
    """Lower bounds of the step of placements that use exactly some set of devices."""

    def __init__(self, table: PlacementTable) -> None:
        self.table = table
        weight = table.work_s.mean(axis=(1, 2))
        self.weight = float(weight.sum())
        works = weight > 0
        pace = table.work_s[works] / weight[works, None, None]
        with np.errstate(divide="ignore"):
            # Of a device that takes no time for some part, infinitely fast.
            self.speed = 1 / pace.min(axis=0) if works.any() else np.ones(table.work_s.shape[1:])

    def load_s(self, devices: Ints) -> float:
        """The mean over windows of the longest load."""
        shared = self.weight / self.speed[devices].sum(axis=0)
        alone = self.table.work_s[:, devices].min(axis=1).max(axis=0)
        return float(np.maximum(shared, alone).mean()) * (1 - ROUNDING)

    def step_s(self, devices: Ints) -> float:
        return self.load_s(devices) + self.table.reduce_of(devices) * (1 - ROUNDING)


def without_one(table: PlacementTable, devices: Ints) -> list[Ints]:
    """Return the sets that lack one device that may slow the others down; none for one device."""
    if len(devices) < 2:
        return []
    chosen, size = np.ix_(devices, devices), len(devices)
    apart = ~np.eye(size, dtype=bool)
    slowest = int(np.where(apart, table.gb_per_s[chosen], np.inf).argmin())
    longest = int(np.where(apart, table.latency_s[chosen], -np.inf).argmax())
    weakest = int(table.work_s[:, devices].sum(axis=(0, 2)).argmax())
    out = {slowest // size, slowest % size, longest // size, longest % size, weakest}
    return [np.delete(devices, k) for k in sorted(out)]


def search_on_fewer(table: PlacementTable, search: Search, time_left: TimeLeft) -> Ints:
    """Return the best placement of a search on all devices and on some of them, within its time."""
    bounds, everything = StepBounds(table), np.arange(table.num_devices)
    saving = LEAST_SAVING if most_sets(table, time_left()) > 1 else SAVING_IN_HASTE
    if not _saves(bounds, everything, saving * bounds.step_s(everything)):
        return search(table, time_left)
    sets = promising_sets(bounds, time_left)
    if len(sets) == 1 and len(sets[0]) == table.num_devices:
        return search(table, time_left)
    best, least, home = np.zeros(table.num_parts, dtype=np.int64), (math.inf, math.inf), sets[0]
    for k, devices in enumerate(sets):
        if k > 0 and time_left() <= 0:
            break
        if least[0] == 0 and bounds.step_s(devices) >= least[1]:
            if math.isinf(time_left()):
                continue
            # The time of a set that is left out is for the best one.
            devices = home
        each = search_on(table, devices, search, _share(time_left, len(sets) - k))
        key = placement_key(table, each)
        if key < least:
            best, least, home = each, key, devices
    return best


def search_on(table: PlacementTable, devices: Ints, search: Search, time_left: TimeLeft) -> Ints:
    """Return the placement that a search finds on some of the devices, as devices of the table."""
    if len(devices) == 1:
        return np.full(table.num_parts, devices[0], dtype=np.int64)
    if len(devices) == table.num_devices:
        return search(table, time_left)
    found: Ints = devices[search(restricted(table, devices), time_left)]
    return found


def promising_sets(bounds: StepBounds, time_left: TimeLeft) -> list[Ints]:
    """Return the sets of devices on which the tuned rule places best, the best one first."""
    table, budget_s = bounds.table, time_left()
    until = (1 - CHOICE_SHARE) * budget_s
    now = np.arange(table.num_devices)
    least = _key_of_rule(table, now)
    keys = [(least, now)]
    while _saves(bounds, now, LEAST_SAVING * least[1]):
        found = []
        for devices in sorted(without_one(table, now), key=bounds.step_s):
            is_late = time_left() <= (0 if math.isinf(budget_s) else until)
            if is_late or (least[0] == 0 and bounds.step_s(devices) >= least[1]):
                break
            found.append((_key_of_rule(table, devices), devices))
        if not found:
            break
        key, now = min(found, key=lambda each: each[0])
        keys += found
        if key > (least[0], GO_ON * least[1]):
            break
        least = min(least, key)
    near = [each for each in keys if each[0] <= (least[0], SEARCH_ON * least[1])]
    best = [devices for _, devices in sorted(near, key=lambda each: each[0])]
    some = [devices for devices in best if len(devices) > 1][: most_sets(table, budget_s)]
    # One device takes no time.
    return [devices for devices in best if len(devices) == 1] + some


def most_sets(table: PlacementTable, budget_s: float) -> int:
    """Return how many sets can be searched in some seconds, each of them well."""
    if math.isinf(budget_s):
        return MOST_SETS
    devices, windows = table.num_devices, table.num_windows
    operations = TRIALS_PER_PART * table.num_parts * devices * (devices + windows)
    return min(MOST_SETS, max(1, int(budget_s * OPERATIONS_PER_S / operations)))


def device_sets(table: PlacementTable) -> Iterable[Ints]:
    """Yield every set of devices that can all be in use."""
    for code in range(1, 1 << table.num_devices):
        devices = np.flatnonzero([code >> d & 1 for d in range(table.num_devices)])
        if len(devices) <= table.num_parts:
            yield devices


def least_step_s(bounds: StepBounds, load_s: float) -> float:
    """Return a bound of the step on any set, where no longest load is below ``load_s``: for each
    number of devices, the fastest in computing are taken, with the best of all links.
    """
    table, apart = bounds.table, ~np.eye(bounds.table.num_devices, dtype=bool)
    fastest = np.sort(bounds.speed, axis=0)[::-1].cumsum(axis=0)
    best_gb_per_s = float(table.gb_per_s[apart].max(initial=0.0))
    shortest_s = float(table.latency_s[apart].min(initial=np.inf))
    found = []
    for count in range(1, min(table.num_devices, table.num_parts) + 1):
        shared_s = float((bounds.weight / fastest[count - 1]).mean())
        reduce_s = table.ring_s(count, best_gb_per_s, shortest_s)
        found.append(max(load_s, shared_s * (1 - ROUNDING)) + reduce_s * (1 - ROUNDING))
    return min(found)


def _saves(bounds: StepBounds, devices: Ints, least_s: float) -> bool:
    """Whether leaving one of these devices out can save more than so many seconds."""
    table = bounds.table
    kept = [table.reduce_of(each) for each in without_one(table, devices)]
    return bool(kept) and table.reduce_of(devices) - min(kept) > least_s


def _key_of_rule(table: PlacementTable, devices: Ints) -> tuple[float, float]:
    costs = costs_of(restricted(table, devices))
    placed = construct(costs, work_order(costs), np.array(TUNED_WEIGHTS), 0.0, 0)
    return placement_key(table, devices[placed])


def _share(time_left: TimeLeft, parts: int) -> TimeLeft:
    """Return a clock of one of so many equal parts of the time, where it has an end."""
    budget_s = time_left()
    if math.isinf(budget_s):
        return time_left
    kept_s = budget_s * (1 - 1 / parts)
    return lambda: time_left() - kept_s
