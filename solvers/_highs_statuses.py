"""What the statuses of HiGHS mean, and versions with known faults."""

from __future__ import annotations

from optbench.model.result import Termination

# Versions of HiGHS whose MIP presolve reports a suboptimal solution as optimal: singleton columns
# are stuffed against row activities that were computed for other columns (HiGHS issues 2957, 3043,
# 3073, 3094; not in 1.13.1, corrected in 1.15).
WRONG_PRESOLVE = ("1.14.0",)
# The reason for every HiGHS status without optimum or proof. A status that is absent here is a
# failure of HiGHS.
STOPPED: dict[str, Termination] = {
    "kTimeLimit": "time_limit",
    "kIterationLimit": "work_limit",
    "kSolutionLimit": "work_limit",
    "kMemoryLimit": "memory_limit",
    "kInterrupt": "interrupted",
    "kHighsInterrupt": "interrupted",
}
SOLVED = ("kOptimal", "kObjectiveBound", "kObjectiveTarget", "kModelEmpty")
