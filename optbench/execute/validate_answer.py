"""What a cell's process says, read as what it may be at most: JSON that nobody has to believe.

Every value is checked by type, range and vocabulary; whatever does not fit raises ``Nonsense`` with its place and value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from optbench.errors import OptbenchError
from optbench.model.result import Proof, Status, Termination
from optbench.store.records import REASONS
from optbench.typed_values import describe, is_number

STATUSES, TERMINATIONS, PROOFS = get_args(Status), get_args(Termination), get_args(Proof)
# A record is a line of a file that every verb reads: remarks beyond this are cut, lists beyond it end.
MAX_TEXT, MAX_INFO_BYTES, MAX_DEPTH, MAX_LISTED, MAX_POINTS = 4_000, 65_536, 20, 50, 100_000
# Duals of a million rows are shorter.
MAX_CERTIFICATE = 50_000_000
# Whole numbers beyond this are no measurement.
MAX_WHOLE = 10**300
# What a terminal might obey.
CONTROL = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class Nonsense(OptbenchError):
    """An answer that is none."""


@dataclass(frozen=True)
class Told:
    """What a solve says of itself, in order but not believed; ``objective`` is only compared with the verifier's."""

    status: str
    termination: str
    objective: tuple[float, ...] | None
    bounds: tuple[dict[str, Any], ...]
    violations: tuple[str, ...]
    wall_s: float
    time_to_first_s: float | None
    message: str | None
    info: Mapping[str, Any]
    trajectory: tuple[dict[str, Any], ...]
    schedule: Any
    infeasibility: dict[str, Any] | None = None


def read_refusal(answer: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a task says instead of an answer: a reason of its own failure, and the particulars."""
    if "refusal" not in answer:
        return None
    return word(answer, "refusal", tuple(REASONS)), text(answer.get("message", ""), "message")


def read_solve(answer: Mapping[str, Any], levels: int, total_s: float) -> Told:
    """The answer to a solve on an instance with so many levels, from a process that was there for ``total_s``."""
    result = table(answer, "result")
    objective = result.get("objective")
    first = result.get("time_to_first_s")
    message = result.get("message")
    return Told(
        status=word(result, "status", STATUSES),
        termination=word(result, "termination", TERMINATIONS),
        objective=None if objective is None else read_values(objective, levels),
        bounds=read_bounds(result.get("bounds"), levels),
        violations=tuple(text(each, "violations") for each in listed(result, "violations", MAX_LISTED)),
        wall_s=min(seconds(result, "wall_s"), total_s),
        time_to_first_s=None if first is None else min(seconds(result, "time_to_first_s"), total_s),
        message=None if message is None else text(message, "message"),
        info=read_info(result.get("info")),
        trajectory=read_trajectory(result, levels, total_s),
        schedule=answer.get("schedule"),
        infeasibility=read_infeasibility(result),
    )


def read_values(value: Any, levels: int) -> tuple[float, ...]:
    """An objective: a number, or a list of as many as there are levels."""
    values = value if isinstance(value, list) else [value]
    if len(values) != levels:
        raise Nonsense(f"objective is {describe(value)}; the instance has {levels} level{'s' * (levels > 1)}")
    return tuple(number(each, "objective") for each in values)


def read_bounds(value: Any, levels: int) -> tuple[dict[str, Any], ...]:
    """The best bound of each level, source and proof, best first."""
    if not isinstance(value, list):
        raise Nonsense(f"bounds is {describe(value)}; it must be a list")
    best: dict[tuple[int, str, str], dict[str, Any]] = {}
    for row in value:
        bound = _bound(row, levels)
        of = (bound["level"], bound["source"], bound["proof"])
        if of not in best or bound["value"] > best[of]["value"]:
            best[of] = bound
    kept = sorted(best.values(), key=lambda bound: (bound["level"], -bound["value"]))
    return tuple(bound for k in range(levels) for bound in [each for each in kept if each["level"] == k][:MAX_LISTED])


def _bound(row: Any, levels: int) -> dict[str, Any]:
    """A finite number, where it comes from, how it is proved, and an existing level."""
    if not isinstance(row, Mapping):
        raise Nonsense(f"a bound is {describe(row)}; it must be an object")
    source = text(row.get("source"), "a bound's source")
    if not source.strip():
        raise Nonsense("a bound has no source")
    return {
        "value": number(row.get("value"), "a bound's value"),
        "source": source,
        "proof": word(row, "proof", PROOFS),
        "level": _level(row, levels),
        "certificate": _certificate(row),
    }


def _certificate(row: Mapping[str, Any]) -> str | None:
    """The text that is to prove a claim, unread."""
    found = row.get("certificate")
    if found is not None and (not isinstance(found, str) or len(found) > MAX_CERTIFICATE):
        raise Nonsense(f"a certificate is {describe(found)}; it must be text of up to {MAX_CERTIFICATE:,} characters")
    return found


def read_infeasibility(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Who says that no schedule exists, and how it is proved."""
    row = result.get("infeasibility")
    if row is None:
        return None
    if not isinstance(row, Mapping):
        raise Nonsense(f"infeasibility is {describe(row)}; it must be an object")
    return {
        "source": text(row.get("source"), "the source of infeasibility"),
        "proof": word(row, "proof", PROOFS),
        "argument": text(row.get("argument", ""), "the argument of infeasibility"),
        "certificate": _certificate(row),
    }


def _level(row: Mapping[str, Any], levels: int) -> int:
    level = row.get("level", 0)
    if type(level) is not int or not 0 <= level < levels:
        raise Nonsense(f"level is {describe(level)}; the instance has {levels}, counted from 0")
    return level


def read_trajectory(result: Mapping[str, Any], levels: int, total_s: float) -> tuple[dict[str, Any], ...]:
    """Every point with all of its fields."""
    return tuple(_point(row, levels, total_s) for row in listed(result, "trajectory", MAX_POINTS))


def _point(row: Any, levels: int, total_s: float) -> dict[str, Any]:
    """A point of the trajectory."""
    if not isinstance(row, Mapping):
        raise Nonsense(f"a point of the trajectory is {describe(row)}; it must be an object")
    objective, bound = row.get("objective"), row.get("bound")
    return {
        "t_s": min(seconds(row, "t_s"), total_s),
        "objective": None if objective is None else number(objective, "trajectory.objective"),
        "bound": None if bound is None else number(bound, "trajectory.bound"),
        "level": _level(row, levels),
    }


def read_info(value: Any) -> dict[str, Any]:
    """Remarks of a solver about itself, as they came where they are of a sensible size."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Nonsense(f"info is {describe(value)}; it must be an object")
    info = {clean(str(key)): _remark(entry) for key, entry in list(value.items())[:MAX_LISTED]}
    size = len(json.dumps(info))
    return info if size <= MAX_INFO_BYTES else {"left_out": f"{size:,} bytes of info; up to {MAX_INFO_BYTES:,} are kept"}


def _remark(value: Any, depth: int = 0) -> Any:
    """Plain JSON of a bounded depth; what is no number is null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < MAX_WHOLE):
        return value
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {clean(str(key)): _remark(entry, depth + 1) for key, entry in value.items()}
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_remark(entry, depth + 1) for entry in value]
    return describe(value)


def table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, Mapping):
        raise Nonsense(f"{key} is {describe(value)}; it must be an object")
    return value


def listed(data: Mapping[str, Any], key: str, most: int) -> Sequence[Any]:
    """The entries of a list, so many at most."""
    value = data.get(key)
    if not isinstance(value, list):
        raise Nonsense(f"{key} is {describe(value)}; it must be a list")
    return value[:most]


def word(data: Mapping[str, Any], key: str, allowed: Sequence[str]) -> str:
    value = data.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise Nonsense(f"{key} is {describe(value)}; it must be one of {', '.join(allowed)}")
    return value


def text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Nonsense(f"{what} is {describe(value)}; it must be text")
    return clean(value)


def clean(value: str) -> str:
    """Text that can be printed and is not endless."""
    value = value.encode("utf-8", "replace").decode().translate(CONTROL)
    return value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + "..."


def number(value: Any, what: str) -> float:
    """A finite number."""
    if not is_number(value) or not abs(value) < MAX_WHOLE:
        raise Nonsense(f"{what} is {describe(value)}; it must be a finite number")
    return float(value)


def seconds(data: Mapping[str, Any], key: str) -> float:
    """A finite time that is not negative."""
    value = number(data.get(key), key)
    if value < 0:
        raise Nonsense(f"{key} is {value!r}; no time is negative")
    return value
