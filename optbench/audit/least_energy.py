"""The certified least energy of the work in a log, by what a scheduler may change.

Runs that may use the same ways are one group g with U_g units. With x_gw the units that group g
does in way w (type p, n GPUs, clock; T seconds and E joules per unit), M the end of the last run
and S the seconds in the system of all runs together,

    min  Σ (E_w − n rest_p T_w) x_gw + (Σ_p rest_p count_p) M
    s.t. Σ_w x_gw = U_g                         all work is done
         Σ T_w x_gw ≤ S                         a run is at work no longer than it is in the system
         Σ_{w on p} n T_w x_gw ≤ count_p (M − min_j release_j)      GPUs
         M ≥ max_j (release_j + u_j min_w T_w)

holds for every schedule of these runs, whoever made it: preempted, split or placed in hindsight.
The duals are proved again in exact arithmetic (``bounds.exact_check``). Moving the right-hand sides
leaves the duals feasible, so that they certify prices too: no scheduler that is allowed δ more
seconds gets below the bound by more than λ δ.

What is freed (``FREEDOMS``): *clock*, *count*, *placement* let a run use other clocks, GPU counts,
types than on record; *idle* lets GPUs sleep that are not busy; *waiting* gives the runs the seconds
they waited, else S is the time they were at work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.audit.log import Log
from optbench.audit.logged_cluster import LoggedCluster
from optbench.bounds.lp.exact_check import (
    Certificate,
    certificate,
    proven_bound,
    repriced,
    round_down,
)
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble, solve
from optbench.errors import OptbenchError
from optbench.model.instance import Bools, Floats, Ints
from optbench.units import SUM_MARGIN

# Work is counted in units of this power of two, so that the numbers of the programme stay of
# similar size; exact in floats.
MAX_SHIFT = 40
# A type and a count as one number.
SPAN = 1 << 20
TIME_LIMIT_S = 60.0


@dataclass(frozen=True, eq=False)
class Least:
    """``second_w`` is λ, joules per second of time in the system; ``gpu_w`` joules per GPU-second
    of each type.

    ``units`` are those done by (group, way) at the optimum, ``end_s`` is M.
    """

    energy_j: float
    second_w: float
    gpu_w: Floats
    units: Floats
    end_s: float


def least_energy(
    cluster: LoggedCluster,
    free: frozenset[str],
    sojourn_s: float | None,
    *,
    more: Ints | None = None,
    last_s: float | None = None,
) -> Least:
    """The bound; without ``sojourn_s`` runs may take any time. ``more`` are GPUs beyond those there
    are, by type; ``last_s`` is a time, known from elsewhere, before which the last run cannot end.
    """
    log, ways = cluster.log, cluster.ways
    count = log.counts if more is None else log.counts + more
    rest = np.asarray([p.sleep_w if "idle" in free else p.idle_w for p in log.profiles])
    units, allowed, first_end_s = groups_of(cluster, free)
    shift = min(MAX_SHIFT, max(0, int(np.log2(max(1.0, units.sum()))) - 10))
    group, way = np.nonzero(allowed)
    # Rounded to the side that can only enlarge what is allowed, or lower what it costs.
    net = np.nextafter(ways.power_w - rest[ways.kind] * ways.gpus, -np.inf)
    time_s, net_j = np.nextafter(ways.time_s, -np.inf), np.nextafter(net * ways.time_s, -np.inf)
    columns, rows = LpColumns(), LpRows()
    scaled = np.ldexp(units, -shift)
    x = columns.add(len(way), 0.0, scaled[group], net_j[way])
    end = columns.add(
        1, first_end_s if last_s is None else last_s, np.inf, np.ldexp(float(rest @ count), -shift)
    )[0]
    rows.add("work", scaled, (group, x, 1.0), equal=True)
    if sojourn_s is not None:
        rows.add("sojourn", -sojourn_s * (1 + SUM_MARGIN), (0, x, -np.ldexp(time_s[way], shift)))
    used = np.ldexp(np.nextafter(time_s * ways.gpus, -np.inf)[way], shift)
    pools = np.arange(len(count))
    before = np.nextafter(count * float(log.release.min()), -np.inf).clip(0.0)
    there = (pools, np.full(len(pools), end), count.astype(float))
    rows.add("gpus", before, (ways.kind[way], x, -used), there)
    lp = assemble(columns, rows)
    value, primal, proof = proved(lp, np.arange(len(units)))
    # A dual is joules (scaled) per right-hand side.
    dual = np.ldexp(np.asarray([float(y) for y in proof.numerator]), shift - proof.shift)
    family = np.asarray(lp.family)
    table = np.zeros(allowed.shape)
    table[group, way] = np.ldexp(primal[x], shift)
    energy_j, second_w = float(np.ldexp(value, shift)), float(dual[family == "sojourn"].sum())
    return Least(energy_j, second_w, dual[family == "gpus"], table, float(primal[end]))


def proved(lp: LinearProgram, repriceable: Ints) -> tuple[float, Floats, Certificate]:
    """Value, point and duals, the value proved in exact arithmetic."""
    found = solve(lp, TIME_LIMIT_S)
    if found.dual is None or found.status != "Optimal":
        raise OptbenchError(
            f"the programme of the least energy was not solved (HiGHS: {found.status}); no bound "
            "is given"
        )
    proof = repriced(lp, certificate(lp, found.dual), repriceable)
    value = proven_bound(lp, proof)
    if value is None:
        raise OptbenchError("the duals of the least energy prove nothing finite; no bound is given")
    return round_down(value), found.primal, proof


def groups_of(cluster: LoggedCluster, free: frozenset[str]) -> tuple[Floats, Bools, float]:
    """Units by group, which ways each may use, and a time before which the last run cannot end."""
    log, ways = cluster.log, cluster.ways
    label = log.kind * ("placement" not in free) * SPAN + log.gpus * ("count" not in free)
    keys, of = np.unique(label, return_inverse=True)
    allowed = np.ones((len(keys), len(ways.kind)), dtype=bool)
    if "placement" not in free:
        allowed &= ways.kind[None, :] == keys[:, None] // SPAN
    if "count" not in free:
        allowed &= ways.gpus[None, :] == keys[:, None] % SPAN
    if "clock" not in free:
        allowed &= ways.recorded_clock[None, :]
    fastest = np.where(allowed, ways.time_s[None, :], np.inf).min(axis=1)
    units = np.bincount(of, weights=cluster.units, minlength=len(keys)).astype(float)
    last_s = float((log.release + cluster.units * fastest[of]).max()) * (1 - SUM_MARGIN)
    return units, allowed, last_s


def sojourn_of(log: Log, free: frozenset[str]) -> float:
    """Seconds in the system that all runs together may take."""
    return log.sojourn_s if "waiting" in free else log.work_s
