"""A second verifier of co-location in fractions, written from the definitions, job by job."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction as F

from optbench.shapes.colocation.allocations import NOBODY, Allocation
from optbench.shapes.colocation.colocation_data import Colocation

# A row in which a job runs: its number, rate, seconds lost, and window.
Run = tuple[int, F, F, F]


def other_metrics(data: Colocation, decision: Allocation) -> dict[str, F]:
    """Shortfall and energy of a decision that keeps every rule."""
    play = Play(data, decision)
    for epoch in range(data.horizon_epochs):
        play.epoch(epoch)
    return {"shortfall_s": play.shortfall, "energy_j": play.energy}


@dataclass
class Play:
    """The state from epoch to epoch, and the sums so far."""

    data: Colocation
    decision: Allocation
    shortfall: F = F(0)
    ran_on: dict[int, set[int]] = field(default_factory=dict)
    has_run: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = [F(float(work)) for work in self.data.jobs.work]
        asleep = sum((F(each.count) * F(each.sleep_w) for each in self.data.gpu_types), F(0))
        self.energy = asleep * F(self.data.epoch_s) * self.data.horizon_epochs

    def epoch(self, epoch: int) -> None:
        mine = [r for r in range(self.decision.num_rows) if self.decision.epoch[r] == epoch]
        runs: dict[int, list[Run]] = defaultdict(list)
        now: dict[int, set[int]] = defaultdict(set)
        for r in mine:
            self._add_runs(r, runs, now)
        ends: dict[int, F] = {}
        speed: dict[tuple[int, int], F] = {}
        for job in range(self.data.jobs.count):
            self._serve(job, epoch * F(self.data.epoch_s), runs[job], ends, speed)
        for r in mine:
            self.energy += self._row_energy(r, ends, speed)
        self.has_run |= set(now)
        self.ran_on = now

    def _row(self, r: int) -> tuple[int, int, int, F]:
        d = self.decision
        window = F(self.data.profile_s) if d.profile[r] else F(self.data.epoch_s)
        return int(d.gpu_type[r]), int(d.first[r]), int(d.second[r]), window

    def _add_runs(self, r: int, runs: dict[int, list[Run]], now: dict[int, set[int]]) -> None:
        """The rates of a row's jobs; those that fail cost idle power."""
        data, (g, first, second, window) = self.data, self._row(r)
        both = [first] if second == NOBODY else [first, second]
        kinds = [int(data.jobs.job_type[job]) for job in both]
        rates = [F(float(data.alone_per_s[g, kind])) for kind in kinds]
        if len(both) == 2:
            table = data.beside_per_s[g]
            if table[kinds[0], kinds[1]] > 0:
                rates = [F(float(table[kinds[0], kinds[1]])), F(float(table[kinds[1], kinds[0]]))]
            else:
                rates[both.index(max(both))] = F(0)
        for job, kind, rate in zip(both, kinds, rates, strict=True):
            now[job].add(g)
            if rate == 0:
                idle = F(data.gpu_types[g].idle_w) * F(data.restart_s)
                self.energy += data.job_types[kind].gpus * idle
            moved = job in self.has_run and g not in self.ran_on.get(job, set())
            lost = min(F(data.migration_s), window) if moved else F(0)
            runs[job].append((r, rate, lost, window))

    def _serve(
        self,
        job: int,
        begin: F,
        runs: list[Run],
        ends: dict[int, F],
        speed: dict[tuple[int, int], F],
    ) -> None:
        """A job's progress and shortfall in an epoch that begins at ``begin``."""
        jobs, epoch_s = self.data.jobs, F(self.data.epoch_s)
        arrival, stay, required = (
            F(float(column[job])) for column in (jobs.arrival_s, jobs.stay_s, jobs.required_per_s)
        )
        if stay == 0 and self.left[job] <= 0:
            return
        leaves = begin + epoch_s if stay == 0 else min(arrival + stay, begin + epoch_s)
        total = sum((rate for _, rate, _, _ in runs), F(0))
        done = completion(runs, self.left[job]) if stay == 0 else None
        leaves = leaves if done is None else begin + done
        there = max(F(0), leaves - max(arrival, begin))
        ends[job] = leaves - begin
        useful = F(0)
        for r, rate, lost, window in runs:
            if rate == 0:
                continue
            part = rate if stay == 0 else rate * min(F(1), required / total)
            speed[r, job] = part
            active = max(F(0), min(ends[job], window) - lost)
            useful += min(F(1), part / required) * active
            if stay == 0:
                self.left[job] -= rate * active
        self.shortfall += max(F(0), there - useful)
        if stay == 0 and ends[job] < epoch_s:
            self.left[job] = F(0)

    def _row_energy(self, r: int, ends: dict[int, F], speed: dict[tuple[int, int], F]) -> F:
        """Energy beyond sleep while one of the row's jobs is active."""
        data, (g, first, second, window) = self.data, self._row(r)
        used, busy = F(0), F(0)
        for job in (first, second):
            if (r, job) in speed:
                kind = int(data.jobs.job_type[job])
                share = speed[r, job] / F(float(data.alone_per_s[g, kind]))
                used += F(float(data.utilisation[g, kind])) * share
                busy = max(busy, min(ends[job], window))
        gpu = data.gpu_types[g]
        gpus = data.job_types[int(data.jobs.job_type[first])].gpus
        idle, full, sleep = F(gpu.idle_w), F(gpu.full_w), F(gpu.sleep_w)
        return gpus * busy * (idle + min(F(1), used) * (full - idle) - sleep)


def completion(runs: list[Run], left: F) -> F | None:
    """When the work of a training job is done; None if not in this epoch."""
    points = sorted({p for _, rate, lost, window in runs if rate > 0 for p in (lost, window)})
    before = F(0)
    for k, point in enumerate(points):
        done = sum((rate * max(F(0), min(point, w) - lost) for _, rate, lost, w in runs), F(0))
        if done >= left:
            if k == 0:
                return point
            return points[k - 1] + (left - before) * (point - points[k - 1]) / (done - before)
        before = done
    return None
