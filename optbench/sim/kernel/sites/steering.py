"""The parameters and the memory of a policy for sites, which ``sites`` reads and updates."""

from __future__ import annotations

from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.pointers import table_at

# Entries of ``shape``; values of PICK and ROUTE.
WIDEST, CLOCKS, CLASSES, PICK, ROUTE, SELECTIONS, KINDS, SHORT_FIRST = range(8)
TABLE, STICKY, BANDIT, WISHED = range(4)
GIVEN, ASKED = range(2)


class Steering(NamedTuple):
    """The parameters and the memory of a policy. ``order`` lists tasks by the time they reach a
    given pool, else by release. ``head``, ``tail`` and ``behind`` are the queues: one per pool
    and class, classes served in order. ``levels`` counts the clocks of a kind at a pool,
    ``column`` is the clock of a mode, ``coming`` counts devices that jobs in transit will take.
    ``moves`` lists what may change while it runs (``sites.moves``).

    ``serving`` lists the classes in the order in which they are served, followed by the rank of
    each (``rank_of``). With SHORT_FIRST that order depends on the jobs so far: the class whose jobs
    take the least mean time, in their fastest modes, comes first. ``seen`` is the number of jobs of
    each class so far, their mean time, and the seconds per unit of the fastest mode of each kind.
    There are few long columns, because each is an argument of every call that is not inlined: five
    more made the reference week twice as slow.
    """

    shape: Ints
    mode_at: Ints
    class_of: Ints
    order: Ints
    reach: Floats
    pool_of: Ints
    wish_devices: Ints
    wish_clock: Ints
    pick: Ints
    best_clock: Ints
    clock_of: Ints
    low_clock: Ints
    arm_count: Floats
    arm_mean: Floats
    head: Ints
    tail: Ints
    behind: Ints
    waiting: Ints
    waiting_units: Floats
    coming: Ints
    fit: Ints
    levels: Ints
    column: Ints
    moves: Ints
    scratch: Ints
    serving: Ints
    seen: Floats


steering_at = table_at(Steering)


@njit(cache=True)
def rank_of(steering: Steering, of_class: int) -> int:
    """Return the rank at which a class is served."""
    return int(steering.serving[steering.shape[CLASSES] + of_class])
