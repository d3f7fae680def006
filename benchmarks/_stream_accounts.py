"""What the benchmarks of streams count: the tasks of jobs that arrive after a warm-up and before
the last arrivals, so that neither the empty cluster nor the end of the trace is part of a figure.

Per unit of their work: their energy beyond that of resting devices, with the transfers to them; the
rest of the whole cluster over the same time, which no policy changes; and their tardiness. Over all
tasks the same sums have to give the verified energy and tardiness, else nothing is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Bools, Floats, Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify

# Shares of the span of arrivals: what comes before, and what comes after, is not counted.
WARM_UP, LAST = 0.2, 0.9
# Verified sums and these are added in another order.
ROUNDING = 1e-9


@dataclass(frozen=True)
class StreamAccount:
    """Joules and weighted seconds per unit of work, and how many tasks were counted; ``late`` is
    the share of the tasks with a deadline that end after it.
    """

    tasks: int
    started: int
    net_j: float
    rest_j: float
    tardiness_s: float
    late: float
    value: float

    @property
    def energy_j(self) -> float:
        return self.net_j + self.rest_j


def account(instance: Instance, schedule: Schedule) -> StreamAccount:
    """Verify the schedule and count; ``value`` is energy and priced tardiness per unit."""
    verdict = verify(instance, schedule)
    if not verdict.feasible:
        raise RuntimeError(f"{instance.name}: {verdict.violations}")
    net_j, late_s = _by_task(instance, schedule)
    rest_w = float((instance.pools.rest_w * instance.pools.count).sum())
    found, made = verdict.metrics, verdict.metrics["makespan_s"]
    for name, total in (
        ("energy_j", net_j.sum() + rest_w * made),
        ("tardiness_s", (late_s * instance.tasks.weight).sum()),
    ):
        if abs(found[name] - total) > ROUNDING * max(1.0, abs(found[name])):
            raise RuntimeError(f"{instance.name}: {name} is {found[name]}, by tasks {total}")
    release = instance.tasks.release.astype(float)
    first, last = (share * float(release.max()) for share in (WARM_UP, LAST))
    counted: Bools = (release >= first) & (release < last)
    units = float(instance.tasks.units[counted].sum())
    dated = counted & np.isfinite(instance.tasks.deadline)
    price = dict(instance.objective.levels[0]).get("tardiness_s", 0.0)
    net = float(net_j[counted].sum()) / units
    rest = rest_w * (last - first) * instance.tick_s / units
    tardiness = float((late_s * instance.tasks.weight)[counted].sum()) / units
    return StreamAccount(
        int(counted.sum()), int((schedule.start >= first).sum()), net, rest, tardiness,
        float((late_s[dated] > 0).mean()) if dated.any() else 0.0,
        net + rest + price * tardiness,
    )  # fmt: skip


def _by_task(instance: Instance, schedule: Schedule) -> tuple[Floats, Floats]:
    """Return per task its energy beyond rest with the transfers to it, and its lateness in
    seconds.
    """
    n, modes = instance.num_tasks, instance.modes
    mode, ends = np.zeros(n, dtype=np.int64), np.zeros(n)
    mode[schedule.task], ends[schedule.task] = schedule.mode, schedule.end
    net_j = np.asarray(instance.energy_j(mode, instance.tasks.units), dtype=float)
    ticks = np.zeros(n)
    ticks[schedule.task] = schedule.end - schedule.start
    net_j = net_j - instance.mode_rest_w[mode] * ticks * instance.tick_s
    pool, edges = modes.primary[mode], instance.edges
    sent = instance.transfer_j(pool[edges.source], pool[edges.target], edges.data_gb)
    net_j += np.bincount(edges.target, weights=sent, minlength=n)
    due = np.where(np.isfinite(instance.tasks.deadline), instance.tasks.deadline, np.inf)
    return net_j, np.maximum(0.0, ends - due) * instance.tick_s
