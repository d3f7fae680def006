"""Report of a run with arrivals: where work waits at the end, how much waits each day, and which
ingress sends to which site.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.stream_metrics import queue_counts, routing_shares
from optbench.sim.kernel.state import NONE, NOW, READY, State
from optbench.units import DAY_S

# Work that waits at no site: in transit, held at its ingress, or not sent by the policy.
ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class SiteReport:
    """``queue_by_day`` counts at the end of each day. ``routing[g][p]`` is the share of the jobs
    sent from ingress g that went to pool p; of interrupted work, its first part counts.
    """

    queue_end_by_site: dict[str, int]
    queue_by_day: tuple[int, ...]
    routing: dict[str, dict[str, float]]


def site_report(
    instance: Instance, state: State, schedule: Schedule, queue_end: int
) -> SiteReport | None:
    """Return the report; None where nothing arrives from outside."""
    stream = instance.stream
    if stream is None:
        return None
    names = instance.pools.names
    waits = waiting_at(instance, state)
    at_site = np.bincount(waits[waits != NONE], minlength=len(names)).tolist()
    by_site = dict(zip(names, at_site, strict=True))
    if queue_end > sum(at_site):
        by_site[ELSEWHERE] = queue_end - sum(at_site)
    shares = np.nan_to_num(routing_shares(instance, schedule, waits)).tolist()
    routing = {
        ingress: dict(zip(names, row, strict=True))
        for ingress, row in zip(stream.ingress_names, shares, strict=True)
    }
    return SiteReport(by_site, _by_day(instance, state, schedule), routing)


def waiting_at(instance: Instance, state: State) -> Ints:
    """Return, per task, the pool in whose queue it is, or NONE. A task in transit waits for an
    event.
    """
    stands = (
        (state.status == READY)
        & (state.queue >= 0)
        & (state.queue < instance.num_pools)
        & (state.end == NONE)
    )
    return np.where(stands, state.queue, NONE)


def _by_day(instance: Instance, state: State, schedule: Schedule) -> tuple[int, ...]:
    """Count at the end of each complete day; in an open instance, tasks that run at the horizon do
    not wait there.
    """
    open_end = instance.is_open and instance.horizon is not None
    end = float(instance.horizon or 0.0) if open_end else float(state.total[NOW])
    times = np.arange(1, int(end * instance.tick_s // DAY_S) + 1) * DAY_S / instance.tick_s
    return tuple(
        queue_counts(instance, schedule, np.minimum(times, np.nextafter(end, 0.0))).tolist()
    )
