"""Programmes written as free MPS files, which ``mps_format`` reads."""

from __future__ import annotations

import math
from collections.abc import Iterator

from optbench.errors import UnsupportedError
from optbench.shapes.milp.program import Milp, added, exact


def write_mps(program: Milp) -> str:
    """Write free MPS, from which ``read_mps`` reads the same programme."""
    objective = _free_name("objective", program.rows)
    lines = [f"NAME {program.name or 'programme'}"]
    lines += ["OBJSENSE MAX"] if program.sense == "max" else []
    lines += ["ROWS", f" N {objective}"]
    spans = []
    for name, low, high in zip(program.rows, program.row_lower, program.row_upper, strict=True):
        if low == high:
            lines.append(f" E {name}")
        elif low == -math.inf:
            lines.append(f" L {name}")
        else:
            lines.append(f" G {name}")
            spans += [(name, _span(name, float(low), float(high)))] if high != math.inf else []
    lines += ["COLUMNS", *_column_lines(program, objective), "RHS"]
    if program.constant:
        lines.append(f" RHS {objective} {-program.constant!r}")
    for name, low, high in zip(program.rows, program.row_lower, program.row_upper, strict=True):
        right = float(low if low != -math.inf else high)
        if right and math.isfinite(right):
            lines.append(f" RHS {name} {right!r}")
    lines += ["RANGES", *(f" RNG {name} {span!r}" for name, span in spans)] if spans else []
    return "\n".join([*lines, "BOUNDS", *_bound_lines(program), "ENDATA", ""])


def _span(name: str, low: float, high: float) -> float:
    span = float(exact(high) - exact(low))
    if added(low, span) != high:
        reason = f"row {name!r} lies between {low!r} and {high!r}, and no range gives that"
        raise UnsupportedError(f"MPS cannot express this programme: {reason}; write LP instead")
    return span


def _free_name(wanted: str, taken: tuple[str, ...]) -> str:
    name = wanted
    while name in taken:
        name += "_"
    return name


def _column_lines(program: Milp, objective: str) -> Iterator[str]:
    entries: list[list[tuple[int, float]]] = [[] for _ in program.columns]
    for i in range(program.num_rows):
        for k in range(int(program.row_ptr[i]), int(program.row_ptr[i + 1])):
            entries[int(program.index[k])].append((i, float(program.value[k])))
    inside = False
    for j, name in enumerate(program.columns):
        if bool(program.integer[j]) != inside:
            inside = not inside
            yield f" M{j} 'MARKER' '{'INTORG' if inside else 'INTEND'}'"
        yield f" {name} {objective} {float(program.cost[j])!r}"
        for i, value in entries[j]:
            yield f" {name} {program.rows[i]} {value!r}"
    if inside:
        yield " MEND 'MARKER' 'INTEND'"


def _bound_lines(program: Milp) -> Iterator[str]:
    for j, name in enumerate(program.columns):
        low, high = float(program.lower[j]), float(program.upper[j])
        if low == -math.inf and high == math.inf:
            yield f" FR BND {name}"
        elif low == high:
            yield f" FX BND {name} {low!r}"
        else:
            yield f" MI BND {name}" if low == -math.inf else f" LO BND {name} {low!r}"
            yield f" PL BND {name}" if high == math.inf else f" UP BND {name} {high!r}"
