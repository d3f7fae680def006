"""What policies would have made of the same runs, each verified and set beside the bound at its own
time in the system.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optbench.audit.least_energy import least_energy
from optbench.audit.log import AuditOptions, Log
from optbench.audit.logged_cluster import LoggedCluster, cluster_of, part_of
from optbench.compiling.kernel_table import prepare
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Ints
from optbench.model.measures import check_bound, gap
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.plugins.discovery import load_solver
from optbench.plugins.policy import Policy
from optbench.plugins.protocol import check_supported

Params = Mapping[str, Any]

# Policies that start a run on fewer GPUs where fewer are free, and those that leave a run its
# count.
ELASTIC = (
    "default_policy",
    "ucb1",
    "joint_nf",
    "least_loaded",
    "greedy",
    "threshold_index",
    "drift_penalty",
)
RIGID = ("fcfs", "fixed_dvfs", "min_energy")
# What the search for a policy to take tries.
TIME_W = (0.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0)
STEPS = ((8, 4, 2), (4, 2, 1), (2, 1, 1), (1, 1, 1))
# Runs of the first half that the search looks at: the last so many.
SEARCHED = 50_000
# Share of the record's mean time that a policy should need where it is chosen.
SPARE = 0.95
BUDGETS = (0.8, 0.9, 1.0)
LOW_CLOCKS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class PlayedPolicy:
    """``least_j`` is the least energy at this policy's own mean sojourn; ``after_j`` is what GPUs
    rested for after the record's end, a part of ``energy_j`` that says more of where the log was
    cut than of the policy. ``error`` says why a policy did not run.
    """

    policy: str
    params: Params
    energy_j: float = float("nan")
    sojourn_s: float = float("nan")
    p95_s: float = float("nan")
    makespan_s: float = float("nan")
    rest_j: float = float("nan")
    after_j: float = float("nan")
    least_j: float = float("nan")
    gap: float | None = None
    wall_s: float = 0.0
    error: str | None = None

    @property
    def inside_j(self) -> float:
        """Without what GPUs rested for after the record's end."""
        return self.energy_j - self.after_j

    @property
    def label(self) -> str:
        """For people: numbers are rounded."""
        words = []
        for key, value in self.params.items():
            words.append(f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}")
        return f"{self.policy}:{','.join(words)}" if words else self.policy


def names_of(options: AuditOptions) -> tuple[str, ...]:
    return options.policies or (RIGID if "count" in options.keep else ELASTIC)


def play(
    cluster: LoggedCluster, options: AuditOptions, policy: str, params: Params, bound: bool = True
) -> PlayedPolicy:
    """One policy on all runs. A bound above what was verified stops the audit."""
    name, solver = load_solver(policy, dict(params))
    if not isinstance(solver, Policy):
        raise UnsupportedError(
            f"{policy!r} solves offline and cannot decide as runs arrive; give a policy"
        )
    instance = cluster.instance
    check_supported(solver, name, instance)
    prepare(solver.kernels(instance))
    began = time.perf_counter()
    trace = solver.play(instance, np.random.default_rng(options.seed))
    wall_s = time.perf_counter() - began
    if trace.schedule is None:
        return PlayedPolicy(name, params, wall_s=wall_s, error="left runs over")
    verdict = verify(instance, trace.schedule)
    if not verdict.feasible:
        error = f"its schedule does not verify: {verdict.violations[0]}"
        return PlayedPolicy(name, params, wall_s=wall_s, error=error)
    found = verdict.metrics
    energy_j, sojourn_s = found["energy_j"], found["sojourn_mean_s"]
    least_j = float("nan")
    if bound:
        least_j = least_energy(cluster, options.free, sojourn_s * cluster.log.num_runs).energy_j
        check_bound(
            energy_j, least_j, "the least energy at its own sojourn", f"{cluster.log.name}, {name}"
        )
    return PlayedPolicy(
        name,
        params,
        energy_j,
        sojourn_s,
        found["sojourn_p95_s"],
        found["makespan_s"],
        found["rest_energy_j"],
        resting_after(cluster, trace.schedule),
        least_j,
        gap(energy_j, least_j) if bound else None,
        wall_s,
    )


def resting_after(cluster: LoggedCluster, schedule: Schedule) -> float:
    """Energy of GPUs that were not busy between the record's end and the schedule's."""
    instance, end_s = cluster.instance, float(cluster.log.end.max())
    modes, pools = instance.modes, instance.pools
    start_s, ends_s = schedule.start * instance.tick_s, schedule.end * instance.tick_s
    last_s = max(end_s, float(ends_s.max()))
    late = np.maximum(0.0, ends_s - np.maximum(start_s, end_s)) * modes.devices[schedule.mode]
    busy = np.bincount(modes.primary[schedule.mode], weights=late, minlength=instance.num_pools)
    return float((pools.rest_w * (pools.count * (last_s - end_s) - busy)).sum())


def played(cluster: LoggedCluster, options: AuditOptions) -> list[PlayedPolicy]:
    """The policies asked for; one that refuses the log says why."""
    out = []
    for name in names_of(options):
        params = {}
        if name == "drift_penalty":
            params["latency_budget_s"] = cluster.log.sojourn_s / cluster.log.num_runs
        try:
            out.append(play(cluster, options, name, params))
        except UnsupportedError as error:
            out.append(PlayedPolicy(name, params, error=str(error)))
    return out


def candidates(options: AuditOptions, mean_s: float) -> list[tuple[str, Params]]:
    """What the search tries, of the policies asked for, to keep a mean time in the system."""
    names = names_of(options)
    out: list[tuple[str, Params]] = []
    for w in TIME_W:
        for a, b, c in STEPS:
            out.append(("threshold_index", {"time_w": w, "wide": a, "middle": b, "narrow": c}))
    out += [("drift_penalty", {"time_w": w, "gain": 0.0}) for w in TIME_W]
    out += [("drift_penalty", {"latency_budget_s": round(share * mean_s, 1)}) for share in BUDGETS]
    out += [("greedy", {"gpus": n}) for n in (1, 2, 4)]
    out += [("fixed_dvfs", {"low_clock": f}) for f in LOW_CLOCKS]
    plain: list[tuple[str, Params]] = [(name, {}) for name in names]
    return [*plain, *((name, params) for name, params in out if name in names)]


def recommended(
    log: Log, options: AuditOptions, tried: Sequence[tuple[str, Params]] | None = None
) -> tuple[PlayedPolicy, PlayedPolicy, float, float] | None:
    """The policy of least energy that keeps the record's mean sojourn on the first half of the
    runs, and draws less than it.

    Returned on the whole log, and on the second half, which it was not chosen on, beside the energy
    and the mean sojourn of the record there. Energy is without that of GPUs that rest after the
    record's end. None where there is no such policy.
    """
    half = log.num_runs // 2
    if half < 1:
        return None
    first = cluster_from(log, np.arange(max(0, half - SEARCHED), half), options)
    mean_s = first.log.sojourn_s / first.log.num_runs
    least_j = verify(first.awake, first.schedule).metrics["energy_j"]
    kept: list[PlayedPolicy] = []
    for name, params in candidates(options, mean_s) if tried is None else tried:
        try:
            made = play(first, options, name, params, bound=False)
        except (
            ParameterError,
            UnsupportedError,
        ):
            # A parameter that this log's profiles do not know; the others are tried
            continue
        if made.error is None and made.sojourn_s <= mean_s and made.inside_j < least_j:
            kept.append(made)
    # Other runs will not be quite the same: one with room to spare is preferred.
    best = min(
        kept, key=lambda made: (made.sojourn_s > SPARE * mean_s, made.inside_j), default=None
    )
    if best is None:
        return None
    second = cluster_from(log, np.arange(half, log.num_runs), options)
    there = play(second, options, best.policy, best.params)
    then = verify(second.awake, second.schedule).metrics
    whole = play(cluster_of(log, options.keep), options, best.policy, best.params)
    return whole, there, then["energy_j"], then["sojourn_mean_s"]


def cluster_from(log: Log, rows: Ints, options: AuditOptions) -> LoggedCluster:
    """These runs as a log of their own: time begins with the first of them."""
    part = part_of(log, rows, origin=float(log.release[rows].min()))
    empty = np.zeros(0, dtype=np.int64)
    return cluster_of(replace(part, share=(empty, empty, empty)), options.keep)
