"""Runs of a Slurm log as an instance in seconds, and the recorded schedule.

A pool stands for all devices of one type or, with ``by_node``, for those of one node;
sacct_layout.py then computes where a run may go.
A task is a run: it holds n devices of its type (several types: of each) for
u = End - Start seconds (without an End: Elapsed) at the top clock f₁ of the type's profile, and
its release is Eligible. Tasks with the same types and numbers share a kind, with a mode per clock f
of the profile's law (T, P as in power/dvfs.py, for ``options.work``):

    time per unit    r(f) = T(n, f) / T(n, f₁)
    energy per unit  n P(f) r(f)

At the top clock, where the schedule on record runs, r is 1. A gang over several types draws their
sum at the slowest r(f).

A type without a profile has one mode: the recorded time, no power. Where every device is a core (no
run holds a GPU), the type is ``cpu``, and cores have no profile. ``ConsumedEnergyRaw`` is a whole
node's and differs from job to job: it is compared with the model in the report and changes no mode.

Devices of a type: as given, or the number of its nodes times those given per node, or the sum over
its nodes of the most that were busy at once (a node that no run names is not seen). A run's devices
lie evenly on its nodes. Time 0 is the first release.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optbench.formats.imported import Import, ImportFindings, ImportOptions
from optbench.formats.sacct_fields import energy_j
from optbench.formats.sacct_fleet import Fleet, Shape, fleet_of, held_by
from optbench.formats.sacct_layout import (
    MAX_PAIRS,
    ClusterLayout,
    Placement,
    by_node,
    by_type,
    named,
)
from optbench.formats.sacct_runs import Runs, read_runs
from optbench.formats.sacct_types import with_types
from optbench.formats.text import MisfitError
from optbench.model.instance import Floats, Instance, Ints, Modes, Pools
from optbench.model.plain_instance import (
    longest_by_kind,
    mode_table,
    plain_instance,
    plain_pools,
    plain_tasks,
)
from optbench.model.schedule import Schedule
from optbench.model.task_progress import segment_energy_j
from optbench.model.timegrid import automatic_tick_s, grid_up, to_ints
from optbench.units import HOUR_S

# Weight of a second of flow time in J where energy is modelled: the idle power of a data-centre
# GPU.
FLOW_TIME_WEIGHT = 50.0
# Time and energy per unit, power, clock.
Point = tuple[float, float, float, float]


def read(text: str, name: str, options: ImportOptions | None = None) -> Import:
    """Read the instance, schedule and report of a log."""
    options = options or ImportOptions()
    findings = ImportFindings()
    runs = read_runs(text, findings)
    held = with_types(held_by(runs, findings), runs, options, findings)
    if not len(held.rows):
        raise MisfitError(1, no_runs_message(runs, findings), 1e6)
    start, end = (np.asarray(column, dtype=float)[held.rows] for column in (runs.start, runs.end))
    release = np.asarray(runs.release, dtype=float)[held.rows]
    origin = float(release.min())
    start, end, release = start - origin, end - origin, release - origin
    fleet = fleet_of(held, start, end, options, findings)
    layout = (by_node if options.by_node else by_type)(held, fleet, runs, findings)
    kept = layout.kept
    if not len(kept):
        raise MisfitError(1, no_runs_message(runs, findings), 1e6)
    rows = held.rows[kept]
    start, end, release = start[kept], end[kept], release[kept]
    instance, mode = instance_of(
        name, [runs.job[row] for row in rows], release, end - start, layout, fleet
    )
    schedule = Schedule.of(instance, mode, np.rint(start / instance.tick_s))
    findings.verified(instance, schedule)
    energies = [runs.energy[row] for row in rows]
    return Import(
        instance,
        schedule,
        findings.report("sacct", figures(runs, energies, instance, schedule, fleet)),
    )


def no_runs_message(runs: Runs, findings: ImportFindings) -> str:
    dropped = "; ".join(str(finding) for finding in findings.report("sacct", {}).dropped[:4])
    return (
        f"no run is left of {runs.rows:,} rows of jobs and {runs.steps:,} of steps: "
        f"{dropped or 'there is no row of a job'}"
    )


def instance_of(
    name: str,
    jobs: Sequence[str],
    release: Floats,
    length: Floats,
    layout: ClusterLayout,
    fleet: Fleet,
) -> tuple[Instance, Ints]:
    """The instance, and the recorded mode of each task: its placement at the top clock."""
    kind = layout.kind
    points = [operating_points(shape, fleet) for shape in layout.shapes]
    clocks = np.asarray([len(rows) for rows in points])
    choices = np.asarray([len(placements) for placements in layout.placements])
    pairs = int((clocks * choices)[kind].sum())
    if pairs > MAX_PAIRS:
        raise MisfitError(
            1,
            f"{pairs:,} pairs of run and mode; at most {MAX_PAIRS:,} are allowed: import by type",
            1e6,
        )
    modes = modes_of(layout, points)
    lasts_s = length * longest_by_kind(modes)[kind]
    tick_s = automatic_tick_s(float(release.max(initial=0.0)) + float(lasts_s.max(initial=0.0)))
    flow_time = {"flow_time_s": FLOW_TIME_WEIGHT if fleet.profiles else 1.0}
    instance = plain_instance(
        name,
        "sacct",
        plain_tasks(kind, jobs, length, to_ints(grid_up(release / tick_s))),
        pool_table(layout, fleet),
        modes,
        {"energy_j": 1.0, **flow_time} if fleet.profiles else flow_time,
        tick_s=tick_s,
        places=layout.places[1:],
    )
    return instance, modes.kind_ptr[kind] + (layout.which + 1) * clocks[kind] - 1


def pool_table(layout: ClusterLayout, fleet: Fleet) -> Pools:
    profiles = [fleet.profiles.get(kind) for kind in layout.pool_type]
    return plain_pools(
        layout.pool_names,
        layout.pool_count,
        layout.pool_place,
        idle_w=[getattr(profile, "idle_w", 0.0) for profile in profiles],
        sleep_w=[getattr(profile, "sleep_w", 0.0) for profile in profiles],
        memory_gb=[getattr(profile, "memory_gb", np.inf) for profile in profiles],
    )


def operating_points(shape: Shape, fleet: Fleet) -> list[Point]:
    """The clocks of one shape, ascending; the last is the recorded one."""
    work = fleet.work
    laws = [(fleet.profiles[kind], count) for kind, count in shape if kind in fleet.profiles]
    if not laws:
        return [(1.0, 0.0, 0.0, float("nan"))]
    clocks = set.intersection(*(set(law.clocks) for law, _ in laws)) or {
        min(law.clocks[-1] for law, _ in laws)
    }
    top = max(clocks)
    out = []
    for clock in sorted(clocks):
        ratio = max(
            p.time_per_unit_s(work, n, clock) / p.time_per_unit_s(work, n, top) for p, n in laws
        )
        power = sum(p.power_w(work, n, clock) for p, n in laws)
        out.append((ratio, power * ratio, power, clock))
    return out


def modes_of(layout: ClusterLayout, points: Sequence[Sequence[Point]]) -> Modes:
    """The modes: placements, and the clocks of each."""
    rows: list[Point] = []
    needs: list[Placement] = []
    ptr = [0]
    for choices, clocks in zip(layout.placements, points, strict=True):
        for placement in choices:
            rows += clocks
            needs += [placement] * len(clocks)
        ptr.append(len(rows))
    names = (f"{named(shape)}/{q}" for q, shape in enumerate(layout.shapes))
    return mode_table(names, ptr, rows, needs)


def figures(
    runs: Runs, energies: Sequence[str], instance: Instance, schedule: Schedule, fleet: Fleet
) -> dict[str, int | float | str]:
    """Totals of what was read; recorded energy, and modelled energy of the same runs."""
    start, end = schedule.start, schedule.end
    devices = np.add.reduceat(instance.modes.req_count, instance.modes.req_ptr[:-1])[schedule.mode]
    recorded = np.asarray([energy_j(text) or 0.0 for text in energies])
    known = recorded > 0
    states = ", ".join(f"{state.lower()} {count:,}" for state, count in sorted(runs.states.items()))
    out: dict[str, int | float | str] = {
        "rows of jobs": runs.rows,
        "steps": runs.steps,
        "tasks": instance.num_tasks,
        "types": ", ".join(f"{fleet.counts[kind]} {kind}" for kind in fleet.types),
        "nodes": len(fleet.nodes),
        "kinds": len(instance.modes.kind_names),
        "span_s": float(end.max() - start.min()) * instance.tick_s,
        "device_hours": float((devices * (end - start).astype(float)).sum())
        * instance.tick_s
        / HOUR_S,
        "states": states,
    }
    if known.any():
        modelled = segment_energy_j(instance, schedule)[known]
        out |= {
            "tasks with energy": int(known.sum()),
            "recorded_energy_j": float(recorded[known].sum()),
        }
        out["modelled_energy_j"] = float(modelled.sum())
    return out
