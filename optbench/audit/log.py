"""What an audit takes from a Slurm log: runs on GPUs of known profiles, where each ran, and whether
that was possible.

A run of T seconds on n GPUs of one type at the recorded clock f did T / T(n, f) units of work, by
the law of the type's profile; a unit is the same work on every type. The record is verified twice
before anything is said of it: node by node where the log names nodes (``on_nodes``), and type by
type as a schedule of the instance that the policies face (``cluster``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from optbench.audit.coverage import Coverage, LeftOut, lost_of, unread_of
from optbench.audit.window import Window, stamp, window_of
from optbench.errors import FileFormatError, ParameterError, nearest
from optbench.formats.imported import ImportFindings, ImportOptions, ImportReport
from optbench.formats.node_map import map_of_text
from optbench.formats.sacct import no_runs_message
from optbench.formats.sacct_fields import energy_j
from optbench.formats.sacct_fleet import Fleet, HeldDevices, fleet_of, held_by
from optbench.formats.sacct_runs import Runs, looks_like_sacct, read_runs
from optbench.formats.sacct_types import with_types
from optbench.formats.text import MisfitError
from optbench.model.files.json_fields import read_text, shown
from optbench.model.instance import Bools, Floats, Ints
from optbench.power.profiles import Profile, profile_names
from optbench.units import HOUR_S

# Causes of excess, and what a scheduler may change; the last two are not the scheduler's to give
# away run by run.
FREEDOMS = ("clock", "count", "placement", "idle", "waiting")
KEEPABLE = ("clock", "count", "placement", "idle")
# GPUs of one run; the laws of clocks say nothing of more.
MAX_GPUS = 512
OUTSIDE = "runs lie outside of the time that is audited"


@dataclass(frozen=True)
class AuditOptions:
    """``clocks`` is the clock that each type ran at (a fraction, default the top one); ``keep``
    lists what no scheduler may change: the clock, the GPUs of a run, its type, and that idle GPUs
    stay awake. ``nodes`` is a file with the GPUs of each node. ``since_s`` and ``until_s``, in
    seconds since 1970, are the times between which a Slurm log lists every run.
    """

    records: ImportOptions = field(default_factory=ImportOptions)
    clocks: Mapping[str, float] = field(default_factory=dict)
    keep: frozenset[str] = frozenset()
    policies: tuple[str, ...] | None = None
    nodes: Path | None = None
    since_s: float | None = None
    until_s: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.since_s is not None and self.until_s is not None and self.since_s >= self.until_s:
            raise ParameterError(
                f"since {stamp(self.since_s)} is not before until {stamp(self.until_s)}"
            )
        for name in sorted(self.keep):
            if name not in KEEPABLE:
                raise ParameterError(
                    f"keep: {name!r} is nothing to keep; {nearest(name, KEEPABLE)}"
                )

    @property
    def free(self) -> frozenset[str]:
        """What a scheduler may change."""
        return frozenset(FREEDOMS) - self.keep


@dataclass(frozen=True, eq=False)
class Log:
    """Runs in order of release; times in seconds from the opening of the window, and within it.
    ``kind`` is the type of a run, ``share`` lists what it held as (run, node, GPUs). ``measured_j``
    is NaN where the log has no energy of what lies within.
    """

    name: str
    jobs: list[str]
    release: Floats
    start: Floats
    end: Floats
    kind: Ints
    gpus: Ints
    types: tuple[str, ...]
    counts: Ints
    profiles: tuple[Profile, ...]
    clock: Floats
    work: str
    nodes: tuple[str, ...]
    on_node: Ints
    share: tuple[Ints, Ints, Ints]
    measured_j: Floats
    report: ImportReport
    coverage: Coverage
    window: Window

    @property
    def num_runs(self) -> int:
        return len(self.kind)

    @property
    def sojourn_s(self) -> float:
        """Of all runs together, from release to end."""
        return float((self.end - self.release).sum())

    @property
    def work_s(self) -> float:
        return float((self.end - self.start).sum())


def read_log(path: Path, options: AuditOptions) -> Log:
    """The runs of a log that an audit can speak of; the report says what became of the others."""
    text = read_text(path)
    name = shown(Path(path.stem))
    if not looks_like_sacct(text):
        raise FileFormatError(
            f"{shown(path)}: no table of runs; give the output of sacct --parsable2, or CSV, "
            "with JobID, Start, End, AllocTRES "
            "and NodeList in its first line"
        )
    if options.nodes is not None:
        said = map_of_text(read_text(options.nodes), shown(options.nodes))
        records = replace(options.records, node_map=said.merged(options.records.node_map))
        options = replace(options, records=records)
    try:
        return log_of(text, name, options)
    except MisfitError as error:
        raise FileFormatError(f"{shown(path)}: {error}") from None


def _figures(
    runs: Runs, fleet: Fleet, types: tuple[str, ...], kept: Ints
) -> dict[str, int | float | str]:
    return {
        "rows of jobs": runs.rows,
        "steps": runs.steps,
        "runs": len(kept),
        "nodes": len(fleet.nodes),
        "types": ", ".join(f"{fleet.counts[kind]} {kind}" for kind in types),
    }


def log_of(text: str, name: str, options: AuditOptions) -> Log:
    findings = ImportFindings()
    runs = read_runs(text, findings)
    held = with_types(held_by(runs, findings), runs, options.records, findings)
    if not len(held.rows):
        raise MisfitError(1, no_runs_message(runs, findings), 1e6)
    times = [np.asarray(column, dtype=float) for column in (runs.release, runs.start, runs.end)]
    release, start, end = (column[held.rows] for column in times)
    fleet = fleet_of(held, start, end, options.records, findings)
    types = profiled(fleet, name)
    window = window_of(runs, release, start, end, options.since_s, options.until_s)
    cut = (start < window.opens) | (end > window.closes)
    release, start, end = map(window.clip, (release, start, end))
    length = end - start
    kept, left_out = kept_runs(held, fleet, types, length, findings)
    coverage = coverage_of(runs, held, length, left_out, window)
    kept = kept[np.argsort(release[kept], kind="stable")]
    if not len(kept):
        raise FileFormatError(
            f"{name}: no run is left; "
            f"{'; '.join(map(str, findings.report('sacct', {}).dropped[:4]))}"
        )
    note_edges(cut & (length > 0), findings)
    at = {kind: t for t, kind in enumerate(types)}
    measured = np.asarray([energy_j(runs.energy[row]) or np.nan for row in held.rows[kept]])
    counts = np.asarray([fleet.counts[kind] for kind in types], dtype=np.int64)
    on_node = np.asarray([fleet.on_node[kind] for kind in types], dtype=np.int64)
    figures = _figures(runs, fleet, types, kept)
    figures |= {
        "span_s": float(end[kept].max() - release[kept].min()),
        "gpu_hours": coverage.covered,
        "states": ", ".join(
            f"{key.lower()} {count:,}" for key, count in sorted(runs.states.items())
        ),
    }
    return Log(
        name=name,
        jobs=[runs.job[row] for row in held.rows[kept]],
        release=release[kept] - window.opens,
        start=start[kept] - window.opens,
        end=end[kept] - window.opens,
        kind=np.asarray([at[held.shapes[k][0][0]] for k in kept], dtype=np.int64),
        gpus=np.asarray([held.shapes[k][0][1] for k in kept], dtype=np.int64),
        types=types,
        counts=counts,
        profiles=tuple(fleet.profiles[kind] for kind in types),
        clock=recorded_clocks(types, fleet.profiles, options, findings),
        work=options.records.work,
        nodes=fleet.nodes,
        on_node=on_node.reshape(len(types), -1),
        share=shares_of(fleet, types, kept),
        measured_j=np.where(cut[kept], np.nan, measured),
        report=findings.report("sacct", figures),
        coverage=coverage,
        window=window,
    )


def profiled(fleet: Fleet, name: str) -> tuple[str, ...]:
    """The types with a profile."""
    types = tuple(kind for kind in fleet.types if kind in fleet.profiles)
    if not types:
        have = ", ".join(fleet.types)
        raise FileFormatError(
            f"{name}: no type of device has a profile (types: {have}), so that the log says "
            "nothing of energy; give one with "
            f"--profile {fleet.types[0]}=NAME, NAME a file or one of {', '.join(profile_names())}"
        )
    return types


def note_edges(cut: Bools, findings: ImportFindings) -> None:
    what = (
        "runs reach over an edge of the time that is audited and count with what lies inside, "
        "as released or ending there"
    )
    findings.add_rows("assumed", what, (), int(cut.sum()))


def coverage_of(
    runs: Runs, held: HeldDevices, length: Floats, left_out: list[LeftOut], window: Window
) -> Coverage:
    """All GPU-hours in the window, also of rows whose times or types cannot be known."""
    devices = np.asarray([sum(count for _, count in shape) for shape in held.shapes])
    hours = float((devices * length).sum()) / HOUR_S
    lost = lost_of(runs, held.lost, window)
    readable = hours + (lost.gpu_hours if lost else 0.0)
    unread = unread_of(runs, len(runs.job), len(held.rows) + len(held.lost), readable)
    more = [each for each in (lost, unread) if each is not None]
    return Coverage(
        hours + sum(each.gpu_hours for each in more), (*left_out, *more), window.complete
    )


def kept_runs(
    held: HeldDevices,
    fleet: Fleet,
    types: tuple[str, ...],
    length: Floats,
    findings: ImportFindings,
) -> tuple[Ints, list[LeftOut]]:
    """Runs within the window on one type with a profile, of at most MAX_GPUS; and the others with
    their GPU-hours.
    """
    why = []
    for shape, seconds in zip(held.shapes, length.tolist(), strict=True):
        if seconds <= 0:
            why.append(OUTSIDE)
        elif len(shape) > 1:
            why.append("runs on GPUs of several types at once")
        elif shape[0][0] not in types:
            why.append(
                f"runs on {shape[0][0]!r}, a type without a profile (--profile {shape[0][0]}=NAME)"
            )
        elif shape[0][1] > MAX_GPUS:
            why.append(f"runs on more than {MAX_GPUS} GPUs")
        elif shape[0][1] > fleet.counts[shape[0][0]]:
            why.append("runs that hold more GPUs than there are")
        else:
            why.append("")
    left_out = []
    for what in sorted(set(why) - {""}):
        out = np.flatnonzero([each == what for each in why])
        if what == OUTSIDE:
            findings.add("assumed", what, count=len(out))
            continue
        gpus = [sum(count for _, count in held.shapes[k]) for k in out.tolist()]
        hours = sum(length[k] * n for k, n in zip(out.tolist(), gpus)) / HOUR_S
        words = f"{what}, left out of the audit: {hours:,.1f} GPU-hours"
        findings.add("dropped", words, count=len(out))
        left_out.append(LeftOut(what, len(out), hours))
    return np.flatnonzero([not each for each in why]), left_out


def shares_of(fleet: Fleet, types: tuple[str, ...], kept: Ints) -> tuple[Ints, Ints, Ints]:
    """(run, node, GPUs) of the kept runs whose nodes are known, in order of runs."""
    shares = [np.asarray(fleet.shares[kind], dtype=np.int64) for kind in types]
    row, node, gpus = np.concatenate(shares, axis=1)
    number = np.full(max(kept.max(initial=0), row.max(initial=0)) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    run = number[row]
    mine = np.flatnonzero((run >= 0) & (gpus > 0))
    order = mine[np.argsort(run[mine], kind="stable")]
    return run[order], node[order], gpus[order]


def recorded_clocks(
    types: tuple[str, ...],
    profiles: Mapping[str, Profile],
    options: AuditOptions,
    findings: ImportFindings,
) -> Floats:
    """The clock on record of each type: one of its profile's levels."""
    given = {kind.lower(): clock for kind, clock in options.clocks.items()}
    for kind in given:
        if kind not in {each.lower() for each in types}:
            raise ParameterError(
                f"clock of {kind!r}: no such type of device with a profile; {nearest(kind, types)}"
            )
    out = []
    for kind in types:
        levels = profiles[kind].clocks
        clock = given.get(kind.lower(), levels[-1])
        if clock not in levels:
            allowed = ", ".join(f"{level:g}" for level in levels)
            raise ParameterError(
                f"clock of {kind!r} is {clock:g}; levels of profile {profiles[kind].name}: "
                f"{allowed}"
            )
        if kind.lower() not in given:
            top = f"type {kind!r} ran at its top clock"
            findings.add("assumed", f"{top} (say --clock {kind}=F if it did not)")
        out.append(clock)
    return np.asarray(out, dtype=float)
