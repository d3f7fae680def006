"""The changing state of a simulation as flat arrays, and its conversion to a Schedule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.sim.kernel.plant import POOLS, PREEMPTIVE, SENDS, TASKS, Plant
from optbench.sim.kernel.pointers import table_at

# The status of a task. READY: its predecessors have ended and it is released; its data may still be
# in transit.
WAITING, READY, RUNNING, DONE = range(4)
# Entries of ``tally``.
(
    RELEASED,
    BROKEN,
    EVENTS,
    NUM_FRESH,
    NUM_TOUCHED,
    NUM_DONE,
    NUM_RUNNING,
    NUM_PARTS,
    NUM_READY,
    TROUBLE,
    NUM_RESERVED,
    CHANGES,
    ENTERED,
) = range(13)
# Entries of ``tally`` that stay: the room for events and for parts of interrupted tasks.
EVENT_ROOM, PART_ROOM = 13, 14
# Entries of ``total``.
(
    NOW,
    MAKESPAN,
    BUSY_J,
    TRANSFER_J,
    REST_J,
    REST_W,
    FLOW,
    TARDY,
    OVERDUE,
    COST,
    CARBON,
    LOST_J,
    EVENT_COUNT,
) = range(13)
# Values of ``tally[TROUBLE]``.
PARTS_FULL, EVENTS_FULL = 1, 2
NONE = -1
# Columns of a state by cooled place (``kernel.heat``).
HEAT = ("heat_c", "warm_c", "warm_at", "warm_until")


class State(NamedTuple):
    """``left``, ``right`` and ``key`` hold one heap of ready tasks per queue: queue p of pool p,
    the last of the whole plant.

    ``fresh`` lists tasks that became ready and are in no queue yet, ``touched`` the queues in which
    a start can have become possible. ``part_*`` are finished parts of interrupted tasks, chained by
    ``last_part[task]`` and ``part_before[part]``; ``remaining`` is the rest of a task's units,
    rounded, for rules and policies: its duration is computed by ``kernel.remaining``. ``end`` of a
    ready task is the time of the event it waits for.

    For plans, ``busy_until`` and ``free_at`` hold the rows of ``kernel.expected_devices``,
    ``reserved`` the pools whose rows differ; ``tally[CHANGES]`` counts starts, interruptions and
    faults, ``tally[ENTERED]`` those in ``busy_until``. ``data_at`` is when the data of a ready task
    are at all pools of its kind, where that has been computed; ``there``, ``list_*`` and ``set_*``
    are those of the task at hand, ``by_set`` marks kinds whose modes are chosen by sets.

    ``total[OVERDUE]`` is the lateness of hard deadlines, ``total[LOST_J]`` the energy of discarded
    work above the rest of its devices; both in the units of their metrics, and outside of every
    metric.
    """

    tally: Ints
    total: Floats
    status: Ints
    waiting: Ints
    remaining: Floats
    last_part: Ints
    mode: Ints
    start: Floats
    end: Floats
    queue: Ints
    free: Ints
    gone: Ints
    draw_w: Floats
    event_time: Floats
    event_code: Ints
    fresh: Ints
    touched: Ints
    is_touched: Ints
    left: Ints
    right: Ints
    key: Floats
    root: Ints
    length: Ints
    part_task: Ints
    part_mode: Ints
    part_start: Floats
    part_end: Floats
    part_before: Ints
    free_at: Floats
    busy_until: Floats
    reserved: Ints
    is_reserved: Ints
    data_at: Floats
    there: Floats
    by_set: Ints
    list_begin: Floats
    list_first: Ints
    set_least: Floats
    set_length: Floats
    heat_c: Floats
    warm_c: Floats
    warm_at: Floats
    warm_until: Floats


state_at = table_at(State)


def new_state(plant: Plant, interruptions: int = 0) -> State:
    """Allocate a state of this plant with room for its faults and ``interruptions`` other
    interruptions; ``begin`` fills it.
    """
    n, p, lists = int(plant.size[TASKS]), int(plant.size[POOLS]), len(plant.list_width)
    # A fault stops at most one task per device that vanishes. Where work is not kept, there are no
    # parts to record.
    stopped = int(np.minimum(np.maximum(plant.fault_devices, 0), n).sum()) + interruptions
    parts = stopped if plant.size[PREEMPTIVE] else 0
    # Every task waits for one event at most, its end or its data; room for as many that are no
    # longer waited for.
    events = (2 * n if plant.size[SENDS] or stopped else n) + 8

    def ints(length: int) -> Ints:
        return np.zeros(length, dtype=np.int64)

    tally = ints(15)
    tally[[EVENT_ROOM, PART_ROOM]] = events, parts
    return State(
        tally=tally,
        total=np.zeros(13),
        status=ints(n),
        waiting=ints(n),
        remaining=np.zeros(n),
        last_part=ints(n),
        mode=ints(n),
        start=np.zeros(n),
        end=np.zeros(n),
        queue=ints(n),
        free=ints(p),
        gone=ints(p),
        draw_w=np.zeros(len(plant.cap_room_w)),
        event_time=np.zeros(events),
        event_code=ints(events),
        fresh=ints(n),
        touched=ints(p + 1),
        is_touched=ints(p + 1),
        left=ints(n),
        right=ints(n),
        key=np.zeros(n),
        root=ints(p + 1),
        length=ints(p + 1),
        part_task=ints(parts),
        part_mode=ints(parts),
        part_start=np.zeros(parts),
        part_end=np.zeros(parts),
        part_before=ints(parts),
        free_at=np.zeros(int(plant.device_ptr[-1])),
        busy_until=np.zeros(int(plant.device_ptr[-1])),
        reserved=ints(p),
        is_reserved=ints(p),
        data_at=np.zeros(n),
        there=np.zeros(p + 1),
        by_set=ints(len(plant.kind_ptr) - 1),
        list_begin=np.zeros(lists),
        list_first=ints(lists),
        set_least=np.zeros(len(plant.set_list)),
        set_length=np.zeros(len(plant.set_list)),
        **{name: np.zeros(len(plant.cool_rate)) for name in HEAT},
    )


def schedule_of(instance: Instance, plant: Plant, state: State) -> Schedule | None:
    """Return the schedule; None while a task that must end has not ended."""
    if instance.is_open:
        return open_schedule(instance, plant, state)
    if not (state.status == DONE).all():
        return None
    return partial_schedule(instance, plant, state)


def open_schedule(instance: Instance, plant: Plant, state: State) -> Schedule:
    """Return the schedule of an open instance at its horizon: what has ended, and what runs, cut
    off there.
    """
    made, until = partial_schedule(instance, plant, state), instance.end_of_time
    running = np.flatnonzero((state.status == RUNNING) & (state.start < until))
    start = state.start[running].astype(np.int64)
    end = np.minimum(state.end[running], until).astype(np.int64)
    columns = zip(
        (made.task, made.mode, made.start, made.end),
        (running, state.mode[running], start, end),
        strict=True,
    )
    return Schedule(*(np.concatenate(each) for each in columns))


def last_moment(instance: Instance, until: float) -> float:
    """Return when a run ends at the latest: an open instance is simulated up to its horizon."""
    return (
        min(until, float(instance.horizon))
        if instance.is_open and instance.horizon is not None
        else until
    )


def partial_schedule(instance: Instance, plant: Plant, state: State) -> Schedule:
    """Return everything that has ended so far, including interrupted parts, as copies, so that the
    simulation can continue.
    """
    done = np.flatnonzero(state.status == DONE)
    parts = int(state.tally[NUM_PARTS])
    return Schedule(
        task=np.concatenate((done, state.part_task[:parts])),
        mode=np.concatenate((state.mode[done], state.part_mode[:parts])),
        start=np.concatenate((state.start[done], state.part_start[:parts])).astype(np.int64),
        end=np.concatenate((state.end[done], state.part_end[:parts])).astype(np.int64),
    )
