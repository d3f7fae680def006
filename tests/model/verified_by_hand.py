"""A small instance with every constraint, and a feasible schedule of it.

In ticks of 1 s (idle power 0, objective makespan):

    pools   a: 2 devices of 16 GB, at node; b: 1 device of 8 GB, under the cluster;
            link a -> b of 2 s per GB, none back
    modes   of kind 0: on one device of a (3 s, 100 W), on one of b (2 s, 150 W);
            of kind 1: on two devices of a (4 s, 250 W)
    tasks   t0, t1, t2 of kind 0, t3 of kind 1 (all of one unit);
            t0 -> t2 with 1 GB; t1 -> t3 without data;
            t1 is released at 1, t3 needs 16 GB and must end by 16, everything by 18;
            350 W at most; 3,000 J at most

Feasible: t0 on a from 0 to 3, t1 on a from 1 to 4, t2 on b from 5 to 7 (t0's data arrives at 5), t3
on a from 12 to 16.
"""

from __future__ import annotations

import numpy as np

from optbench.model.instance import (
    Edges,
    Floats,
    Instance,
    Ints,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tasks,
)
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.validate import validate

ON_A, ON_B, BOTH_A = 0, 1, 2


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=float)


def instance() -> Instance:
    tasks = Tasks(
        kind=ints(0, 0, 0, 1),
        units=np.ones(4),
        release=ints(0, 1, 0, 0),
        deadline=floats(np.inf, np.inf, np.inf, 16),
        deadline_hard=np.array([False, False, False, True]),
        weight=np.ones(4),
        memory_gb=floats(0, 0, 8, 16),
    )
    modes = Modes(
        kind_names=("one", "two"),
        kind_ptr=ints(0, 2, 3),
        time_per_unit_s=floats(3, 2, 4),
        energy_per_unit_j=floats(300, 300, 1000),
        power_w=floats(100, 150, 250),
        clock=np.full(3, np.nan),
        req_ptr=ints(0, 1, 2, 3),
        req_pool=ints(0, 1, 0),
        req_count=ints(1, 1, 2),
    )
    return validate(
        Instance(
            name="each constraint",
            tick_s=1.0,
            horizon=18,
            tasks=tasks,
            edges=Edges(ints(0, 1), ints(2, 3), floats(1, 0)),
            places=Places(("cluster", "node"), ints(-1, 0)),
            pools=Pools(
                ("a", "b"),
                ints(1, 0),
                ints(2, 1),
                np.zeros(2),
                np.zeros(2),
                np.zeros(2, dtype=bool),
                floats(16, 8),
            ),
            modes=modes,
            links=Links(
                np.array([[0, 0], [np.inf, 0]]),
                np.array([[0.0, 2.0], [0.0, 0.0]]),
                np.zeros((2, 2)),
            ),
            limits=Limits(ints(0), floats(350), {"energy_j": 3000.0}),
            objective=Objective.weighted({"makespan": 1.0}),
        )
    )


def schedule(problem: Instance) -> Schedule:
    return Schedule.of(problem, [ON_A, ON_A, ON_B, BOTH_A], [0, 1, 5, 12])
