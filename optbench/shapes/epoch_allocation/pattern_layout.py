"""Which rows and columns the programme over patterns has: places, classes, assignments, waiting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Ints
from optbench.shapes.epoch_allocation.demand_groups import JobGroups
from optbench.shapes.epoch_allocation.gpu_lanes import Lanes
from optbench.shapes.epoch_allocation.patterns import Patterns


@dataclass(frozen=True, eq=False)
class PatternPlaces:
    """The places of lanes: ``row[begin[lane] + levels]`` numbers those that patterns have, -1 for
    others; ``behind`` is the first number at or behind each entry.
    """

    begin: Ints
    row: Ints
    behind: Ints
    lane: Ints

    @property
    def count(self) -> int:
        return len(self.lane)

    @property
    def is_lowest(self) -> Bools:
        """Whether a place is the lowest one of its lane."""
        out = np.ones(self.count, dtype=np.bool_)
        out[1:] = self.lane[1:] != self.lane[:-1]
        return out

    def of(self, lane: Ints, levels: Ints) -> Ints:
        """Return the places of lanes that serve so many levels."""
        out: Ints = self.row[self.begin[lane] + levels]
        return out

    def serving(self, lane: Ints, level: Ints) -> Ints:
        """Return the lowest places of lanes that serve these levels (from 0); -1 for none."""
        at = self.behind[self.begin[lane] + level + 1]
        there = np.append(self.lane, -1)[at] == lane
        return np.where(there, at, -1)


@dataclass(frozen=True, eq=False)
class PatternLayout:
    """Classes by how they are served, and where the blocks of rows and columns begin.

    ``direct_place`` is the place of a class whose group has one lane, else -1. ``assigned`` lists
    the classes of groups with several lanes, once for each lane that serves them; ``served`` are
    those classes. ``apart`` are jobs with replicas, ``limited`` those that must be fully served.
    """

    groups: JobGroups
    lanes: Lanes
    patterns: Patterns
    places: PatternPlaces
    direct_place: Ints
    assigned: Ints
    assigned_lane: Ints
    assigned_place: Ints
    served: Ints
    apart: Ints
    limited: Ints

    @property
    def direct(self) -> Ints:
        """Classes of groups with one lane that some pattern serves."""
        return np.flatnonzero(self.direct_place >= 0)

    @property
    def waiting(self) -> Ints:
        """Classes whose jobs wait or not; jobs of the others always wait."""
        return np.concatenate([self.direct, self.served, self.limited])

    @property
    def row_begin(self) -> Ints:
        """Where rows of GPU types, places, classes, numbers and credits begin, and the end."""
        num_gpus = self.groups.demand.num_gpu_types
        blocks = (self.served, self.apart, self.limited)
        sizes = [num_gpus, self.places.count, *map(len, blocks)]
        return np.concatenate([[0], np.cumsum(sizes)])

    @property
    def column_begin(self) -> Ints:
        """Where patterns, places left over, assignments and waiting begin, and the end."""
        sizes = (self.patterns.count, self.places.count, len(self.assigned), len(self.waiting))
        return np.concatenate([[0], np.cumsum(sizes)])


def layout_of(groups: JobGroups, lanes: Lanes, patterns: Patterns) -> PatternLayout:
    """Return the layout of the programme over these patterns."""
    places = places_of(groups, lanes, patterns)
    lane_count = np.diff(lanes.begin)[groups.class_group]
    several = groups.several[groups.class_group]
    direct = (lane_count == 1) & ~several
    first_lane = lanes.begin[groups.class_group]
    at_first = np.where(direct, places.serving(first_lane, groups.class_level), -1)
    split = np.flatnonzero((lane_count > 1) & ~several)
    assigned, assigned_lane, assigned_place = assignments(groups, lanes, places, split)
    apart = np.flatnonzero(several)
    limited = apart[~groups.below[groups.class_group[apart]]]
    return PatternLayout(
        groups, lanes, patterns, places, at_first, assigned, assigned_lane, assigned_place,
        np.unique(assigned), apart, limited,
    )  # fmt: skip


def places_of(groups: JobGroups, lanes: Lanes, patterns: Patterns) -> PatternPlaces:
    """Number the places that patterns have in each lane, from the lowest."""
    levels = groups.level_end - np.concatenate([[0], groups.level_end[:-1]])
    of_lane = np.repeat(levels, np.diff(lanes.begin)) + 1
    begin = np.concatenate([[0], np.cumsum(of_lane)])
    used = np.zeros(int(begin[-1]), dtype=np.bool_)
    for group, served in (
        (patterns.group, patterns.levels),
        (patterns.other, patterns.other_levels),
    ):
        at = np.flatnonzero((group != NOBODY) & ~groups.several[group])
        lane = lanes.lane[group[at], patterns.gpu[at], patterns.mode[at]]
        used[begin[lane] + served[at]] = True
    before: Ints = np.cumsum(used) - used
    lane_of_entry = np.repeat(np.arange(lanes.count), of_lane)
    return PatternPlaces(begin[:-1], np.where(used, before, -1), before, lane_of_entry[used])


def assignments(
    groups: JobGroups, lanes: Lanes, places: PatternPlaces, split: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return class, lane within its group and place of all classes in lanes that serve them."""
    count = np.diff(lanes.begin)[groups.class_group[split]]
    of_class = np.repeat(split, count)
    ends = np.cumsum(count)
    within = np.arange(len(of_class)) - np.repeat(ends - count, count)
    lane = lanes.begin[groups.class_group[of_class]] + within
    place = places.serving(lane, groups.class_level[of_class])
    there = place >= 0
    return of_class[there], within[there], place[there]
