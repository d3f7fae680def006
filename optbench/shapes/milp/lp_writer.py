"""Programmes written as LP files, which ``lp_format`` reads."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from optbench.errors import UnsupportedError
from optbench.shapes.milp.lp_format import BINARIES, INFINITY, INTEGERS, NAME, SENSES, UNREADABLE
from optbench.shapes.milp.program import Milp


def write_lp(program: Milp) -> str:
    """Write an LP file, from which ``read_lp`` reads the same programme."""
    for name in (*program.columns, *program.rows):
        if re.fullmatch(NAME, name) is None or name.lower() in RESERVED:
            reason = f"{name!r} cannot be a name in this format"
            raise UnsupportedError(f"LP cannot express this programme: {reason}; write MPS instead")
    # Every column stands in the objective, so that their order is kept.
    costs = zip(program.columns, program.cost.tolist(), strict=True)
    objective = [f"  {_signed(value)} {name}" for name, value in costs]
    objective += [f"  {_signed(program.constant)}"] if program.constant else []
    lines = ["Maximize" if program.sense == "max" else "Minimize", " objective:", *objective]
    lines.append("Subject To")
    for i, name in enumerate(program.rows):
        lines += _row_lines(program, i, name)
    lines.append("Bounds")
    for name, low, high in zip(
        program.columns, program.lower.tolist(), program.upper.tolist(), strict=True
    ):
        lines.append(f" {_shown(low)} <= {name} <= {_shown(high)}")
    whole = [
        f" {name}"
        for name, is_whole in zip(program.columns, program.integer, strict=True)
        if is_whole
    ]
    return "\n".join([*lines, *(["General", *whole] if whole else []), "End", ""])


OTHER_WORDS = ("subject", "such", "to", "that", "st", "bounds", "bound", "end", "free")
RESERVED = {*SENSES, *INTEGERS, *BINARIES, *UNREADABLE, *INFINITY, *OTHER_WORDS}


def _row_lines(program: Milp, i: int, name: str) -> Iterator[str]:
    low, high = float(program.row_lower[i]), float(program.row_upper[i])
    entries = range(int(program.row_ptr[i]), int(program.row_ptr[i + 1]))
    terms = [
        f"{_signed(float(program.value[k]))} {program.columns[int(program.index[k])]}"
        for k in entries
    ]
    terms = terms or [f"+0 {program.columns[0]}"]
    two_sided = low != high and math.isfinite(low) and math.isfinite(high)
    yield f" {name}: {low!r} <= {terms[0]}" if two_sided else f" {name}: {terms[0]}"
    yield from (f"  {term}" for term in terms[1:])
    if low == high:
        yield f"  = {low!r}"
    else:
        yield f"  <= {high!r}" if math.isfinite(high) else f"  >= {low!r}"


def _signed(value: float) -> str:
    return f"+ {value!r}" if value >= 0 else f"- {-value!r}"


def _shown(side: float) -> str:
    return repr(side) if math.isfinite(side) else ("inf" if side > 0 else "-inf")
