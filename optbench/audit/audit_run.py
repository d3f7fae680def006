"""An audit: the record verified, the least energy certified, the excess by cause, the policies, the
prices and the advice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optbench.audit import advice
from optbench.audit.causes import causes_of
from optbench.audit.least_energy import Least, least_energy
from optbench.audit.log import AuditOptions, Log, read_log
from optbench.audit.logged_cluster import LoggedCluster, cluster_of, on_nodes
from optbench.audit.policies import PlayedPolicy, candidates, played, recommended
from optbench.audit.ranges import Ranges, ranges
from optbench.formats.traces import looks_like_pods
from optbench.model.files.json_fields import read_text
from optbench.model.measures import check_bound
from optbench.model.task_progress import segment_energy_j
from optbench.model.timegrid import RELATIVE_TOLERANCE
from optbench.model.verify import verify

# Mean sojourns, relative to the record's, at which the frontier is drawn.
FRONTIER = (0.25, 0.35, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0, 3.0)


# By how much a policy may exceed the record's mean time on the runs it was not chosen on.
ROOM = 0.02


@dataclass(frozen=True)
class AuditRecord:
    """What the verifier says of the record. ``nodes_checked`` are runs that were also verified node
    by node.
    """

    feasible: bool
    violations: tuple[str, ...]
    nodes_checked: int
    energy_j: float
    busy_j: float
    rest_j: float
    sojourn_s: float
    p95_s: float
    service_s: float
    makespan_s: float
    measured_j: float | None
    modelled_j: float | None


@dataclass(frozen=True)
class EnergyPrices:
    """``second_j``: a second more of mean sojourn lowers the least energy by at most so much.
    ``watt_s``: a watt less of mean power costs at least so many seconds of mean sojourn (None where
    time is worth nothing). ``gpu_j``: by type, what the least energy becomes lower by with one GPU
    more, its resting power counted. ``gpu_w``: what a second of a GPU is worth, because others
    could use it, by type.
    """

    second_j: float
    watt_s: float | None
    gpu_j: dict[str, float]
    gpu_w: dict[str, float]


@dataclass(frozen=True)
class Choice:
    """The policy chosen on the first half, on all runs and on the second half (``later``), each
    with the record there.
    """

    whole: PlayedPolicy
    recorded_j: float
    recorded_s: float
    later: PlayedPolicy
    later_recorded_j: float
    later_recorded_s: float
    clocks: tuple[advice.Clock, ...]

    @property
    def later_saving(self) -> float:
        """Share of the record's energy on the second half."""
        return 1.0 - self.later.inside_j / self.later_recorded_j

    @property
    def holds(self) -> bool:
        """Whether it saves energy on all runs and on the second half, in both in the record's mean
        time but for ROOM.
        """
        saves = self.later_saving > 0 and self.whole.inside_j < self.recorded_j * (
            1 - RELATIVE_TOLERANCE
        )
        in_time = self.later.sojourn_s <= self.later_recorded_s * (1 + ROOM)
        return saves and in_time and self.whole.sojourn_s <= self.recorded_s * (1 + ROOM)


@dataclass(frozen=True, eq=False)
class Audit:
    """Energies in joules over all runs; ``least`` is certified, at the record's mean sojourn,
    ``floor_j`` at any.
    """

    cluster: LoggedCluster
    options: AuditOptions
    record: AuditRecord
    least: Least
    floor_j: float
    awake_j: float
    causes: dict[str, float]
    frontier: tuple[tuple[float, float], ...]
    policies: tuple[PlayedPolicy, ...]
    prices: EnergyPrices
    uses: tuple[advice.Use, ...]
    choice: Choice | None
    tried: int
    assumptions: tuple[str, ...]
    wall_s: float

    @property
    def log(self) -> Log:
        return self.cluster.log

    @property
    def saving(self) -> float:
        """Share of the recorded energy above the bound."""
        return 1.0 - self.least.energy_j / self.record.energy_j


def nothing(_: str) -> None:
    """No-op progress callback."""


def audit(
    path: str | Path, options: AuditOptions | None = None, tell: Callable[[str], None] = nothing
) -> Audit | AuditRecord | Ranges:
    """Audit a Slurm log, or a trace of pods, whose energies are intervals.

    A record that does not verify is returned alone: nothing else would mean anything.
    """
    began = time.perf_counter()
    options = options or AuditOptions()
    tell("reading the log")
    head = read_text(Path(path)).lstrip("\ufeff\r\n ")[:4096].partition("\n")[0]
    if looks_like_pods(head.split(",")):
        return ranges(Path(path), options)
    log = read_log(Path(path), options)
    cluster = cluster_of(log, options.keep)
    tell("verifying the record")
    record = record_of(cluster)
    if not record.feasible:
        return record
    tell("certifying the least energy")
    free, total_s = options.free, log.sojourn_s
    least = least_energy(cluster, free, total_s)
    check_bound(
        record.energy_j, least.energy_j, "the least energy at the record's sojourn", log.name
    )
    floor_j = least_energy(cluster, free, None).energy_j
    awake_j = max(least.energy_j, least_energy(cluster, free - {"idle"}, total_s).energy_j)
    causes = causes_of(cluster, free, record.energy_j)
    tell("playing policies")
    made = tuple(played(cluster, options))
    tell("choosing a policy on the first half")
    choice = choice_of(cluster, options, record, least)
    return Audit(
        cluster,
        options,
        record,
        least,
        floor_j,
        awake_j,
        causes,
        least_energy_frontier(cluster, free),
        made,
        prices_of(cluster, free, least),
        tuple(advice.uses_of(cluster, least)),
        choice,
        len(candidates(options, record.sojourn_s)),
        assumptions_of(log, options),
        time.perf_counter() - began,
    )


def record_of(cluster: LoggedCluster) -> AuditRecord:
    """By type on the cluster, and by node where the log names nodes."""
    log, verdict = cluster.log, verify(cluster.awake, cluster.schedule)
    violations = [str(each) for each in verdict.violations]
    nodes = on_nodes(log)
    if nodes is not None:
        violations += [str(each) for each in verify(*nodes).violations]
    found = verdict.metrics
    known = np.isfinite(log.measured_j)
    modelled = segment_energy_j(cluster.instance, cluster.schedule)
    return AuditRecord(
        not violations,
        tuple(violations),
        0 if nodes is None else nodes[0].num_tasks,
        found["energy_j"],
        found["busy_energy_j"],
        found["rest_energy_j"],
        found["sojourn_mean_s"],
        found["sojourn_p95_s"],
        found["service_mean_s"],
        found["makespan_s"],
        float(log.measured_j[known].sum()) if known.any() else None,
        float(modelled[known].sum()) if known.any() else None,
    )


def least_energy_frontier(
    cluster: LoggedCluster, free: frozenset[str]
) -> tuple[tuple[float, float], ...]:
    """Return points (mean sojourn in seconds, certified lower bound on the energy in joules) at the
    multiples FRONTIER of the recorded mean sojourn; those that no schedule reaches are left out.
    """
    runs, total_s = cluster.log.num_runs, cluster.log.sojourn_s
    fastest = np.full(len(cluster.instance.modes.kind_names), np.inf)
    np.minimum.at(fastest, cluster.instance.modes.kind, cluster.instance.modes.time_per_unit_s)
    least_s = float((cluster.units * fastest[cluster.instance.tasks.kind]).sum())
    points = [share * total_s for share in FRONTIER if share * total_s > least_s * (1 + 1e-6)]
    return tuple((float(s / runs), least_energy(cluster, free, s).energy_j) for s in points)


def prices_of(cluster: LoggedCluster, free: frozenset[str], least: Least) -> EnergyPrices:
    log = cluster.log
    second_j = least.second_w * log.num_runs
    gpu_j = {}
    for t, name in enumerate(log.types):
        more = np.zeros(len(log.types), dtype=np.int64)
        more[t] = 1
        gpu_j[name] = (
            least.energy_j - least_energy(cluster, free, log.sojourn_s, more=more).energy_j
        )
    gpu_w = dict(zip(log.types, least.gpu_w.tolist(), strict=True))
    return EnergyPrices(second_j, least.end_s / second_j if second_j > 0 else None, gpu_j, gpu_w)


def choice_of(
    cluster: LoggedCluster, options: AuditOptions, record: AuditRecord, least: Least
) -> Choice | None:
    found = recommended(cluster.log, options)
    if found is None:
        return None
    whole, later, recorded_j, recorded_s = found
    price_w = advice.price_of(whole.policy, whole.params, least.second_w)
    clocks = advice.clocks_of(cluster, price_w, advice.counts_of(whole.params, cluster))
    return Choice(
        whole, record.energy_j, record.sojourn_s, later, recorded_j, recorded_s, tuple(clocks)
    )


def assumptions_of(log: Log, options: AuditOptions) -> tuple[str, ...]:
    """What the figures rest on, in words."""
    kept = {"clock": "its clock", "count": "its number of GPUs", "placement": "its type of GPU"}
    changed = ", ".join(what for name, what in kept.items() if name in options.free)
    chosen = f"give a run other values for {changed}" if changed else "change no run"
    sleeps = "idle" in options.free
    resting = " and may sleep otherwise" if sleeps else ", and would with any scheduler"
    most = int(log.gpus.max())
    profiles = ", ".join(
        f"{kind} = {p.name}" for kind, p in zip(log.types, log.profiles, strict=True)
    )
    words = [
        log.window.words,
        (
            f"Energy is that of the GPUs by profiles ({profiles}) and their law of clocks for "
            f"{log.work} work; it is not measured."
        ),
        (
            "A unit of work is the same work on every type: a run of T seconds on n GPUs did T / "
            "T(n, f) units by its type's law."
        ),
        f"A scheduler may {chosen}.",
        f"GPUs that are not busy idle on record{resting}.",
        (
            "They are paid for until the last run ends; a run is released when Slurm called it "
            "eligible."
        ),
    ]
    if "count" in options.free:
        words.append(
            f"A run may have 1 to {most} GPUs, the most that any run held; whether its memory "
            "allows it, the log does not say."
        )
    if log.coverage.left_out:
        words.append(
            "Runs that are left out are in no figure: where they held GPUs of a type that is "
            "audited, these count as idle."
        )
    words.append(
        "The bound knows the runs beforehand and may split them; no scheduler beats it, and none "
        "need reach it."
    )
    return (*words, *(str(finding) for finding in log.report.assumed))
