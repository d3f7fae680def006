"""A second verifier of co-location in fractions, written from the definitions, job by job."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction as F

from optbench.shapes.colocation.allocations import NOBODY, Allocation
from optbench.shapes.colocation.colocation_data import Colocation


def other_metrics(data: Colocation, decision: Allocation) -> dict[str, F]:
    """Shortfall and energy of a decision that keeps every rule."""
    jobs, epoch_s = data.jobs, F(data.epoch_s)
    left = [F(float(work)) for work in jobs.work]
    ran_on: dict[int, set[int]] = {}
    has_run: set[int] = set()
    shortfall = F(0)
    energy = (
        sum((F(each.count) * F(each.sleep_w) for each in data.gpu_types), F(0))
        * epoch_s
        * data.horizon_epochs
    )
    for epoch in range(data.horizon_epochs):
        begin = epoch * epoch_s
        mine = [r for r in range(decision.num_rows) if decision.epoch[r] == epoch]
        runs: dict[int, list[tuple[int, F, F, F]]] = defaultdict(
            list
        )  # job: row, rate, lost, window
        now: dict[int, set[int]] = defaultdict(set)
        for r in mine:
            g, first, second = (
                int(x[r]) for x in (decision.gpu_type, decision.first, decision.second)
            )
            window = F(data.profile_s) if decision.profile[r] else epoch_s
            both = [first] if second == NOBODY else [first, second]
            kinds = [int(jobs.job_type[job]) for job in both]
            rates = [F(float(data.alone_per_s[g, kind])) for kind in kinds]
            if len(both) == 2:
                pair = [
                    F(float(data.beside_per_s[g, kinds[0], kinds[1]])),
                    F(float(data.beside_per_s[g, kinds[1], kinds[0]])),
                ]
                if pair[0] > 0:
                    rates = pair
                else:
                    rates[both.index(max(both))] = F(0)
            for job, rate in zip(both, rates, strict=True):
                now[job].add(g)
                if rate == 0:
                    gpus = data.job_types[int(jobs.job_type[job])].gpus
                    energy += gpus * F(data.gpu_types[g].idle_w) * F(data.restart_s)
                moved = job in has_run and g not in ran_on.get(job, set())
                lost = min(F(data.migration_s), window) if moved else F(0)
                runs[job].append((r, rate, lost, window))
        ends: dict[int, F] = {}
        speed: dict[tuple[int, int], F] = {}
        for job in range(jobs.count):
            arrival = F(float(jobs.arrival_s[job]))
            stay = F(float(jobs.stay_s[job]))
            if stay == 0 and left[job] <= 0:
                continue
            leaves = begin + epoch_s if stay == 0 else min(arrival + stay, begin + epoch_s)
            total = sum((rate for _, rate, _, _ in runs[job]), F(0))
            required = F(float(jobs.required_per_s[job]))
            if stay == 0:
                end = _end(runs[job], left[job])
                if end is not None:
                    leaves = begin + end
            there = max(F(0), leaves - max(arrival, begin))
            ends[job] = leaves - begin
            useful = F(0)
            for r, rate, lost, window in runs[job]:
                if rate == 0:
                    continue
                part = rate if stay == 0 else rate * min(F(1), required / total)
                speed[r, job] = part
                active = max(F(0), min(ends[job], window) - lost)
                useful += min(F(1), part / required) * active
                if stay == 0:
                    left[job] -= rate * active
            shortfall += max(F(0), there - useful)
            if stay == 0 and ends[job] < epoch_s:
                left[job] = F(0)
        for r in mine:
            g, first, second = (
                int(x[r]) for x in (decision.gpu_type, decision.first, decision.second)
            )
            used, busy = F(0), F(0)
            window = F(data.profile_s) if decision.profile[r] else epoch_s
            for job in (first, second):
                if (r, job) in speed:
                    kind = int(jobs.job_type[job])
                    alone = F(float(data.alone_per_s[g, kind]))
                    used += F(float(data.utilisation[g, kind])) * speed[r, job] / alone
                    busy = max(busy, min(ends[job], window))
            gpu = data.gpu_types[g]
            gpus = data.job_types[int(jobs.job_type[first])].gpus
            idle, full, sleep = F(gpu.idle_w), F(gpu.full_w), F(gpu.sleep_w)
            energy += gpus * busy * (idle + min(F(1), used) * (full - idle) - sleep)
        has_run |= set(now)
        ran_on = now
    return {"shortfall_s": shortfall, "energy_j": energy}


def _end(runs: list[tuple[int, F, F, F]], left: F) -> F | None:
    """When the work of a training job is done; None if not in this epoch."""
    points = sorted(
        {point for _, rate, lost, window in runs if rate > 0 for point in (lost, window)}
    )
    before = F(0)
    for k, point in enumerate(points):
        done = sum((rate * max(F(0), min(point, w) - lost) for _, rate, lost, w in runs), F(0))
        if done >= left:
            return (
                point
                if k == 0
                else points[k - 1] + (left - before) * (point - points[k - 1]) / (done - before)
            )
        before = done
    return None
