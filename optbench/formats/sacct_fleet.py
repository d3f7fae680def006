"""The devices in a Slurm log: those that each run held, numbers by type and node, and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optbench.formats.imported import ImportFindings, ImportOptions, busy_peaks
from optbench.formats.sacct_fields import cores_of, gpus_of, is_nothing, nodes_of
from optbench.formats.sacct_runs import Runs
from optbench.formats.text import MAX_POOLS, MisfitError, shorten
from optbench.model.instance import Floats, Ints
from optbench.power.profiles import Profile, profile, profile_names

CORES = "cpu"
MAX_DEVICES = 1 << 30
# The number of names in all node lists; later lists are not read.
MAX_NODE_ROWS = 5_000_000

# (type, devices) of one run.
Shape = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class HeldDevices:
    """Devices of the kept runs: shape and nodes by row of the log's runs.

    ``lost`` has the row and devices of runs that were left out because their type is not known.
    """

    rows: Ints
    shapes: list[Shape]
    nodes: list[tuple[str, ...]]
    lost: list[tuple[int, int]] = field(default_factory=list)


# Run, node and devices, a row for each node of each run.
Shares = tuple[Ints, Ints, Ints]


@dataclass(frozen=True)
class Fleet:
    """Types of device, their numbers in all and by node, and the profiles of those that have one.

    ``given`` are the types whose number the user gave.
    """

    types: tuple[str, ...]
    nodes: tuple[str, ...]
    profiles: dict[str, Profile]
    work: str
    counts: dict[str, int] = field(default_factory=dict)
    on_node: dict[str, Ints] = field(default_factory=dict)
    shares: dict[str, Shares] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)


def fleet_of(
    held: HeldDevices, start: Floats, end: Floats, options: ImportOptions, findings: ImportFindings
) -> Fleet:
    types = tuple(sorted({kind for shape in set(held.shapes) for kind, _ in shape}))
    if len(types) > MAX_POOLS:
        raise MisfitError(
            1, f"{len(types):,} types of device; at most {MAX_POOLS:,} are allowed", 1e6
        )
    listed = {node for kind in types for node in options.node_map.listed(kind)}
    nodes = tuple(sorted({node for names in set(held.nodes) for node in names} | listed))
    fleet = Fleet(types, nodes, profiles_of(types, options, findings), options.work)
    count_devices(fleet, held, start, end, options, findings)
    return fleet


def held_by(runs: Runs, findings: ImportFindings) -> HeldDevices:
    """GPUs by run, or cores where no run holds a GPU."""
    cache: dict[str, Shape] = {text: gpus_of(text) for text in set(runs.resources)}
    cores = not any(cache.values())
    if cores:
        findings.add("assumed", "no run holds a GPU: the devices are cores")
    node_cache: dict[str, tuple[str, ...] | None] = {}
    rows, shapes, nodes, total = [], [], [], 0
    for row, text in enumerate(runs.resources):
        shape = core_shape(text, runs.cores[row]) if cores else cache[text]
        where = f"line {runs.line[row]}, job {shorten(runs.job[row])}"
        if not shape:
            findings.add(
                "dropped", "runs that hold no core" if cores else "runs that hold no GPU", where
            )
            continue
        if any(count > MAX_DEVICES for _, count in shape):
            findings.add("dropped", f"runs that hold more than {MAX_DEVICES:,} devices", where)
            continue
        listed = runs.nodes[row]
        if listed not in node_cache:
            node_cache[listed] = () if is_nothing(listed) else nodes_of(listed)
        names = node_cache[listed]
        if names and total + len(names) > MAX_NODE_ROWS:
            findings.add(
                "warnings",
                f"node lists after {MAX_NODE_ROWS:,} names are not looked at; the run has no node",
                where,
            )
            names = ()
        total += len(names or ())
        if names is None:
            findings.add(
                "warnings",
                "node lists that cannot be read; the run has no node",
                f"{where}: {shorten(listed)}",
            )
        if "+" in runs.job[row]:
            what = (
                "components of heterogeneous jobs, tasks of their own that need not start together"
            )
            findings.add("warnings", what, where)
        rows.append(row)
        shapes.append(shape)
        nodes.append(names or ())
    return HeldDevices(np.asarray(rows, dtype=np.int64), shapes, nodes)


def core_shape(tres: str, column: str) -> Shape:
    cores = cores_of(tres) or (
        int(column) if column.isascii() and column.isdigit() and len(column) < 10 else 0
    )
    return ((CORES, cores),) if cores else ()


def profiles_of(
    types: Sequence[str], options: ImportOptions, findings: ImportFindings
) -> dict[str, Profile]:
    """The profile of each type: as given, else a shipped one of exactly the type's name, else none.

    ``a100`` alone has none: the user must say whether its boards draw 300 or 400 W.
    """
    have, gpus = ", ".join(types), [kind for kind in types if kind != CORES]
    out = {kind: shape for kind, shape in options.loaded(findings).items() if kind in gpus}
    for kind in options.profiles:
        if kind.lower() not in gpus:
            what = f"profile of {kind!r} is not used: the types of device are {have}"
            findings.add("warnings", what[:300])
    shipped = {plain(name): name for name in profile_names()}
    for kind in types:
        name = shipped.get(plain(kind)) if kind in gpus else None
        if kind not in out and name is not None and options.work in profile(name).kinds:
            out[kind] = profile(name)
            findings.add("assumed", f"type {kind!r} is profile {out[kind].name}, by its name")
        elif kind not in out:
            near = [name for name in profile_names() if plain(name).startswith(plain(kind))]
            example = f"{kind}={' or '.join(near) or 'NAME'}"
            advice = f"; give a profile for it ({example})" if kind in gpus else ""
            what = f"type {kind!r} draws no power and has its recorded times only{advice}"
            findings.add("assumed", what[:300])
    if options.work != ImportOptions.work and not out:
        what = f"work {options.work!r} is not used: no type has a profile with it"
        findings.add("warnings", what[:300])
    return out


def plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def count_devices(
    fleet: Fleet,
    held: HeldDevices,
    start: Floats,
    end: Floats,
    options: ImportOptions,
    findings: ImportFindings,
) -> None:
    """Compute the number of devices of each type, in all and on each node."""
    given = {kind.lower(): count for kind, count in options.counts.items()}
    per_node = {kind.lower(): count for kind, count in options.devices_per_node.items()}
    have = ", ".join(fleet.types)
    for kind in sorted({*given, *per_node} - set(fleet.types)):
        what = f"the number of devices of type {kind!r} is not used: the types are {have}"
        findings.add("warnings", what[:300])
    index = {node: n for n, node in enumerate(fleet.nodes)}
    users: dict[str, tuple[list[int], list[int]]] = {kind: ([], []) for kind in fleet.types}
    for k, shape in enumerate(held.shapes):
        for kind, count in shape:
            users[kind][0].append(k)
            users[kind][1].append(count)
    for kind, (mine, amount) in users.items():
        row, node, share = fleet.shares[kind] = spread_devices(
            mine, amount, held.nodes, index, kind, findings
        )
        peaks = busy_peaks(node, start[row], end[row], share, len(fleet.nodes))
        fleet.on_node[kind] = on_nodes_of(
            kind, fleet.nodes, peaks, per_node.get(kind), options, findings
        )
        said = int(fleet.on_node[kind].sum())
        if kind in given:
            fleet.counts[kind] = given[kind]
            fleet.given.append(kind)
        elif kind in per_node and said:
            fleet.counts[kind] = said
        else:
            one = np.zeros(len(mine), dtype=np.int64)
            at_once = busy_peaks(one, start[mine], end[mine], np.asarray(amount), 1)
            fleet.counts[kind] = int(max(said, at_once[0]))
            busy = [fleet.nodes[n] for n in np.flatnonzero(peaks).tolist()]
            if said and all(options.node_map.count(name, kind) is not None for name in busy):
                continue  # The node map gives the number.
            where = f" on each of {len(busy):,} nodes" if busy else ""
            what = f"devices of type {kind!r}: the most that were busy at once{where}"
            findings.add("assumed", f"{fleet.counts[kind]:,} {what}")


def on_nodes_of(
    kind: str,
    nodes: Sequence[str],
    peaks: Ints,
    per_node: int | None,
    options: ImportOptions,
    findings: ImportFindings,
) -> Ints:
    """Devices of a type on each node: by the node map, else by node, else the most busy at once."""
    listed = set(options.node_map.listed(kind))
    counts = [
        options.node_map.count(name, kind) if name in listed or peaks[n] else None
        for n, name in enumerate(nodes)
    ]
    out = peaks.copy()
    for n, (name, count) in enumerate(zip(nodes, counts, strict=True)):
        if count is not None:
            out[n] = count
        elif per_node is not None and (peaks[n] or name in listed):
            out[n] = per_node
    over = np.flatnonzero(peaks > out)
    by_map = [n for n in over.tolist() if counts[n] is not None]
    rest = [n for n in over.tolist() if counts[n] is None]
    what = f"nodes with more devices of type {kind!r} busy at once than the list of nodes says"
    findings.add_rows(
        "warnings", what, (f"{nodes[n]}: {peaks[n]}, not {out[n]}" for n in by_map), len(by_map)
    )
    what = f"nodes with more than {per_node} devices of type {kind!r} busy at once"
    findings.add_rows("warnings", what, (f"{nodes[n]}: {peaks[n]}" for n in rest), len(rest))
    return out


def spread_devices(
    mine: Sequence[int],
    amount: Sequence[int],
    nodes: Sequence[tuple[str, ...]],
    index: dict[str, int],
    kind: str,
    findings: ImportFindings,
) -> Shares:
    """Distribute a run's devices evenly over its nodes; the first nodes take the remainder."""
    size = np.asarray([len(nodes[k]) for k in mine], dtype=np.int64)
    total = np.asarray(amount, dtype=np.int64)
    row = np.repeat(np.asarray(mine, dtype=np.int64), size)
    node = np.asarray([index[name] for k in mine for name in nodes[k]], dtype=np.int64)
    which = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    base, rest = (
        np.repeat(total // np.maximum(size, 1), size),
        np.repeat(total % np.maximum(size, 1), size),
    )
    uneven = int(((size > 0) & (total % np.maximum(size, 1) > 0)).sum())
    what = (
        f"runs whose devices of type {kind!r} do not divide by their nodes: the first nodes "
        "have one more"
    )
    findings.add_rows("assumed", what, (), uneven)
    missing = int((size == 0).sum())
    findings.add_rows("assumed", f"runs on devices of type {kind!r} without a node", (), missing)
    return row, node, base + (which < rest)
