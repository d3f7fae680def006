"""Types of GPU for runs that name none: from the user's node map, else from other runs of their
nodes.

A row ``gres/gpu=4`` says how many GPUs a run held and not which. Taking such GPUs for a type of
their own would count the devices of a node twice. A run therefore has the type that all of its
nodes have. Where that is not known, it is left out, unless its nodes are seen with untyped runs
only: those are devices of their own, of the type ``gpu``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from optbench.formats.imported import ImportFindings, ImportOptions
from optbench.formats.sacct_fields import UNNAMED
from optbench.formats.sacct_fleet import CORES, HeldDevices, Shape
from optbench.formats.sacct_runs import Runs
from optbench.formats.text import shorten

UNTYPED = "runs whose type of GPU is known neither from their row nor from their nodes"
ADVICE = "give it with --node-type NODES=TYPE (*=TYPE for runs without a node) or --nodes FILE"


def with_types(
    held: HeldDevices, runs: Runs, options: ImportOptions, findings: ImportFindings
) -> HeldDevices:
    """Give runs the types of their nodes; runs that remain without a type are in ``lost``."""
    untyped = [
        k for k, shape in enumerate(held.shapes) if any(kind == UNNAMED for kind, _ in shape)
    ]
    seen = seen_types(held)
    check_map(seen, options, findings)
    plain = {kind for kinds in seen.values() for kind in kinds} | {
        kind for shape in set(held.shapes) for kind, _ in shape
    }
    if not untyped or CORES in plain:
        return held
    known = bool(plain - {UNNAMED}) or any(
        options.node_map.types(node) for names in set(held.nodes) for node in names
    )
    known |= bool(options.node_map.otherwise)
    counted = UNNAMED in {kind.lower() for kind in options.counts}
    shapes, lost, sources = list(held.shapes), [], Counter[str]()
    cache: dict[tuple[str, ...], tuple[str | None, str]] = {}
    for k in untyped:
        names = held.nodes[k]
        if names not in cache:
            cache[names] = type_of(names, seen, options)
        kind, source = cache[names]
        if kind is not None:
            shapes[k] = name_untyped(shapes[k], kind)
            sources[f"{source}: {kind}"] += 1
        elif known and not counted and (not names or source == "several"):
            lost.append(k)
    for source, count in sorted(sources.items()):
        findings.add("assumed", f"runs without a type of GPU have that {source}", count=count)
    where = (f"line {runs.line[held.rows[k]]}, job {shorten(runs.job[held.rows[k]])}" for k in lost)
    findings.add_rows("dropped", f"{UNTYPED}; {ADVICE}", where, len(lost))
    gone = set(lost)
    kept = [k for k in range(len(shapes)) if k not in gone]
    devices = [(int(held.rows[k]), sum(count for _, count in shapes[k])) for k in lost]
    rows = np.asarray(held.rows)[kept].astype(np.int64)
    return replace(
        held,
        rows=rows,
        shapes=[shapes[k] for k in kept],
        nodes=[held.nodes[k] for k in kept],
        lost=devices,
    )


def seen_types(held: HeldDevices) -> dict[str, set[str]]:
    """Types by node; a run of several on several nodes does not say which node has which."""
    out: dict[str, set[str]] = defaultdict(set)
    for shape, names in set(zip(held.shapes, held.nodes, strict=True)):
        kinds = {kind for kind, _ in shape} - {UNNAMED, CORES}
        if kinds and (len(kinds) == 1 or len(names) == 1):
            for node in names:
                out[node] |= kinds
    return out


def type_of(
    nodes: tuple[str, ...], seen: dict[str, set[str]], options: ImportOptions
) -> tuple[str | None, str]:
    """The one type of all these nodes, and its source; "several" where not all have the same.

    An entry of the map for a node takes precedence over other runs, which take precedence over
    ``*``.
    """
    given = [options.node_map.types(node) for node in nodes]
    found = [
        said or frozenset(seen.get(node, ())) or options.node_map.otherwise
        for node, said in zip(nodes, given, strict=True)
    ]
    if not nodes:
        given = found = [options.node_map.otherwise]
    if all(len(each) == 1 for each in found) and len(set(found)) == 1:
        shown = all(given) or not any(seen.get(node) for node in nodes)
        return next(iter(found[0])), "of the node map" if shown else "of their nodes' other runs"
    return None, "several" if any(found) else "none"


def name_untyped(shape: Shape, kind: str) -> Shape:
    """The shape with its untyped devices as devices of a type."""
    total: Counter[str] = Counter()
    for each, count in shape:
        total[kind if each == UNNAMED else each] += count
    return tuple(sorted(total.items()))


def check_map(seen: dict[str, set[str]], options: ImportOptions, findings: ImportFindings) -> None:
    """Add findings for nodes whose runs name another type than the map."""
    for node, kinds in sorted(seen.items()):
        said = options.node_map.types(node)
        if said and not kinds <= said:
            words = f"{node}: {', '.join(sorted(kinds))}, not {', '.join(sorted(said))}"
            what = (
                "nodes whose runs name another type of GPU than the node map; what the runs "
                "name holds"
            )
            findings.add("warnings", what, words)
