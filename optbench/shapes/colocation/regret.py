"""Excess energy of a decision over that of a reference, after a warm-up.

Both are measured from the epoch in which job ⌈n/5⌉ arrives until the later one of the two has no
job left, with the sleep power of all GPUs in between: (E − E_ref) / E_ref. It is negative where the
reference is the worse one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from optbench.shapes.colocation.allocations import Allocation
from optbench.shapes.colocation.colocation_data import Colocation, Floats
from optbench.shapes.colocation.trace_replay import TraceReplay, replay

# The share of the jobs that arrive during the warm-up.
WARM_UP = 0.2


def warm_epoch(data: Colocation) -> int:
    """The epoch in which the first job after the warm-up arrives."""
    job = math.ceil(WARM_UP * data.jobs.count) - 1
    return int(data.jobs.arrival_s[max(0, job)] // data.epoch_s)


def last_epoch(played: TraceReplay) -> int:
    """The last epoch with a job in the system."""
    return max((each.epoch for each in played.played if each.effects.present_s.any()), default=0)


def energy_by_epoch(data: Colocation, played: TraceReplay) -> Floats:
    """The energy of all GPUs in each epoch of the horizon."""
    sleep, _, _ = data.watts()
    asleep = sum(each.count * watts for each, watts in zip(data.gpu_types, sleep, strict=True))
    busy: Floats = played.by_epoch(data.horizon_epochs, "energy_j")
    return busy + float(asleep) * data.epoch_s


def energies_after_warm_up(data: Colocation, decisions: Sequence[Allocation]) -> list[float]:
    """The energy of each decision, from the warm-up until all of them have no job left."""
    replays = [replay(data, each) for each in decisions]
    end = max(last_epoch(each) for each in replays) + 1
    begin = warm_epoch(data)
    return [float(energy_by_epoch(data, each)[begin:end].sum()) for each in replays]


def excess_energy(data: Colocation, decision: Allocation, reference: Allocation) -> float:
    """Return (E − E_ref) / E_ref after the warm-up."""
    own, other = energies_after_warm_up(data, (decision, reference))
    return (own - other) / other
