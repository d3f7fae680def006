"""Pools of a Slurm log, by type or by node and type, and the placements of each kind of run.

By type, a kind is a shape (types with their devices) and has one placement. By node, a kind is a
pattern: the devices that a run holds on each of its nodes. A run on one node may go to every node
that has enough devices; a run on several nodes may go to every set of nodes that a run of its
pattern had in the log. Runs whose nodes are not known are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.formats.imported import ImportFindings
from optbench.formats.sacct_fleet import Fleet, HeldDevices, Shape
from optbench.formats.sacct_runs import Runs
from optbench.formats.text import MAX_POOLS, MisfitError, shorten
from optbench.model.instance import Ints

# (pool, devices) of one placement.
Placement = tuple[tuple[int, int], ...]
# The devices that a run holds on each of its nodes.
Pattern = tuple[Shape, ...]
MAX_PLACEMENTS, MAX_PAIRS = 250_000, 50_000_000


@dataclass(frozen=True)
class ClusterLayout:
    """Pools; kinds with placements; kind and recorded placement of the ``kept`` runs."""

    places: tuple[str, ...]
    pool_names: tuple[str, ...]
    pool_place: list[int]
    pool_count: list[int]
    pool_type: list[str]
    shapes: list[Shape]
    placements: list[list[Placement]]
    kept: Ints
    kind: Ints
    which: Ints


def by_type(held: HeldDevices, fleet: Fleet, runs: Runs, findings: ImportFindings) -> ClusterLayout:
    small = {
        shape
        for shape in set(held.shapes)
        if all(count <= fleet.counts[kind] for kind, count in shape)
    }
    fits = np.asarray([shape in small for shape in held.shapes])
    drop("runs that hold more devices than there are", np.flatnonzero(~fits), held, runs, findings)
    kept = np.flatnonzero(fits)
    pool = {kind: p for p, kind in enumerate(fleet.types)}
    kinds = {shape: q for q, shape in enumerate(sorted({held.shapes[k] for k in kept}))}
    return ClusterLayout(
        places=("cluster",),
        pool_names=fleet.types,
        pool_place=[0] * len(pool),
        pool_count=[fleet.counts[kind] for kind in fleet.types],
        pool_type=list(fleet.types),
        shapes=list(kinds),
        placements=[[tuple((pool[kind], count) for kind, count in shape)] for shape in kinds],
        kept=kept,
        kind=np.asarray([kinds[held.shapes[k]] for k in kept], dtype=np.int64),
        which=np.zeros(len(kept), dtype=np.int64),
    )


Parts = dict[int, list[tuple[str, int]]]


def _pools_by_node(fleet: Fleet) -> list[tuple[int, str]]:
    """Return (node, type) of every pool."""
    nodes = range(len(fleet.nodes))
    pools = [(n, kind) for n in nodes for kind in fleet.types if fleet.on_node[kind][n] > 0]
    if len(pools) > MAX_POOLS:
        words = f"{len(pools):,} pools by node; at most {MAX_POOLS:,} are allowed: import by type"
        raise MisfitError(1, words, 1e6)
    return pools


def _parts_by_node(fleet: Fleet, num_runs: int) -> list[Parts]:
    """Return, per run and node, the types and numbers of devices that it held."""
    parts: list[Parts] = [{} for _ in range(num_runs)]
    for kind in fleet.types:
        run, node, share = fleet.shares[kind]
        for k, n, count in zip(run.tolist(), node.tolist(), share.tolist(), strict=True):
            if count:
                parts[k].setdefault(n, []).append((kind, count))
    return parts


def _fits(part: Parts, fleet: Fleet) -> bool:
    return all(c <= fleet.on_node[kind][n] for n, row in part.items() for kind, c in row)


def by_node(held: HeldDevices, fleet: Fleet, runs: Runs, findings: ImportFindings) -> ClusterLayout:
    pools = _pools_by_node(fleet)
    if fleet.given:
        words = f"counts of {', '.join(fleet.given)} are not used by node; give devices_per_node"
        findings.add("warnings", words)
    index = {pool: p for p, pool in enumerate(pools)}
    parts = _parts_by_node(fleet, len(held.shapes))
    placeless = np.asarray([not part for part in parts], dtype=bool)
    fits = np.asarray([_fits(part, fleet) for part in parts], dtype=bool)
    for bad, words in (
        (placeless, "runs without a node, which cannot be placed by node"),
        (~fits, "runs that hold more devices of a node than it has"),
    ):
        drop(words, np.flatnonzero(bad), held, runs, findings)
    kept = np.flatnonzero(fits & ~placeless)
    patterns: list[Pattern] = [tuple(sorted(tuple(row) for row in parts[k].values())) for k in kept]
    recorded: list[Placement] = [
        tuple((index[n, kind], c) for n, row in sorted(parts[k].items()) for kind, c in row)
        for k in kept
    ]
    kinds = {pattern: q for q, pattern in enumerate(sorted(set(patterns)))}
    seen: list[dict[Placement, int]] = [{} for _ in kinds]
    for pattern, placement in zip(patterns, recorded, strict=True):
        seen[kinds[pattern]].setdefault(placement, 0)
    placements: list[list[Placement]] = []
    total = 0
    for pattern, q in kinds.items():
        is_single = len(pattern) == 1
        choices = all_placements(pattern[0], pools, index, fleet) if is_single else sorted(seen[q])
        placements.append(choices)
        total += len(choices)
        if total > MAX_PLACEMENTS:
            words = f"more than {MAX_PLACEMENTS:,} placements by node: import by type"
            raise MisfitError(1, words, 1e6)
    at = [{placement: c for c, placement in enumerate(choices)} for choices in placements]
    of_run = [kinds[pattern] for pattern in patterns]
    which = [at[q][placement] for q, placement in zip(of_run, recorded, strict=True)]
    return ClusterLayout(
        places=("cluster", *fleet.nodes),
        pool_names=tuple(f"{fleet.nodes[n]}/{kind}" for n, kind in pools),
        pool_place=[n + 1 for n, _ in pools],
        pool_count=[int(fleet.on_node[kind][n]) for n, kind in pools],
        pool_type=[kind for _, kind in pools],
        shapes=[total_shape(pattern) for pattern in kinds],
        placements=placements,
        kept=kept,
        kind=np.asarray(of_run, dtype=np.int64),
        which=np.asarray(which, dtype=np.int64),
    )


def all_placements(
    shape: Shape, pools: Sequence[tuple[int, str]], index: dict[tuple[int, str], int], fleet: Fleet
) -> list[Placement]:
    """All nodes that have at least as many devices of each type."""
    nodes = [
        n
        for n, kind in pools
        if kind == shape[0][0] and all(fleet.on_node[other][n] >= c for other, c in shape)
    ]
    return [tuple((index[n, kind], c) for kind, c in shape) for n in nodes]


def total_shape(pattern: Pattern) -> Shape:
    """The devices that a run holds on all its nodes together."""
    total: dict[str, int] = {}
    for row in pattern:
        for kind, count in row:
            total[kind] = total.get(kind, 0) + count
    return tuple(sorted(total.items()))


def drop(what: str, rows: Ints, held: HeldDevices, runs: Runs, findings: ImportFindings) -> None:
    where = (
        (
            f"line {runs.line[held.rows[k]]}, job {shorten(runs.job[held.rows[k]])}: "
            f"{named(held.shapes[k])}"
        )
        for k in rows
    )
    findings.add_rows("dropped", what, where, len(rows))


def named(shape: Shape) -> str:
    return " + ".join(f"{count} {kind}" for kind, count in shape)
