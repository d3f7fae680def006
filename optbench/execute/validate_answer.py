"""Validate the untrusted JSON answer of a cell's process.

The type, range and vocabulary of every value are checked; a value that does not fit raises
``FileFormatError`` with its place and content.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from optbench import typed_values
from optbench.errors import FileFormatError
from optbench.execute.tasks import ANSWER
from optbench.model.files.strict_json import parse_json
from optbench.model.result import Proof, Status, Termination
from optbench.sandbox.job_folder import UnreadableFileError, read_bounded_file
from optbench.shapes.protocol.measurements import Measurements
from optbench.store.records import REASONS, Reason
from optbench.typed_values import describe, refuse

T = TypeVar("T")
STATUSES, TERMINATIONS, PROOFS = get_args(Status), get_args(Termination), get_args(Proof)
# A record is one line of a file that every verb reads: longer remarks are cut, longer lists are
# truncated.
MAX_TEXT, MAX_INFO_BYTES, MAX_DEPTH, MAX_LISTED, MAX_POINTS = 4_000, 65_536, 20, 50, 100_000
# Certificates with the duals of a million rows are shorter than this.
MAX_CERTIFICATE = 50_000_000
# Larger numbers cannot be measurements.
LARGEST = 1e300
# Control characters that a terminal might interpret.
CONTROL = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


@dataclass(frozen=True)
class SolveAnswer:
    """The validated but untrusted result of a solve; the verifier recomputes its objective."""

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
    decision: Any = None


def read_answer(folder: Path) -> dict[str, Any] | Reason:
    """Return the answer that a cell wrote, as strict JSON, or the reason why it is not valid."""
    try:
        answer = parse_json(read_bounded_file(folder / ANSWER).decode("utf-8"))
    except UnreadableFileError as error:
        return Reason("nonsense", str(error))
    except (FileFormatError, UnicodeDecodeError) as error:
        return Reason("nonsense", f"its answer cannot be read: {error}")
    if not isinstance(answer, dict):
        return Reason("nonsense", f"its answer is a {type(answer).__name__}, not an object")
    return answer


def read_refusal(answer: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the reason and message with which a task refuses, or None if it does not refuse."""
    if "refusal" not in answer:
        return None
    return word(answer, "refusal", REASONS), text(answer.get("message", ""), "message")


def read_solve(
    answer: Mapping[str, Any], levels: int, total_s: float, sense: str = "min"
) -> SolveAnswer:
    """Validate a solve with ``levels`` levels from a process that ran for ``total_s``."""
    result = table(answer.get("result"), "result")
    violations = listed(result.get("violations"), "violations")[:MAX_LISTED]
    points = listed(result.get("trajectory"), "trajectory")
    first = result.get("time_to_first_s")
    return SolveAnswer(
        status=word(result, "status", STATUSES),
        termination=word(result, "termination", TERMINATIONS),
        objective=_optional(result.get("objective"), lambda value: read_values(value, levels)),
        bounds=read_bounds(result.get("bounds"), levels, sense),
        violations=tuple(text(each, "violations") for each in violations),
        wall_s=min(seconds(result, "wall_s"), total_s),
        time_to_first_s=None if first is None else min(seconds(result, "time_to_first_s"), total_s),
        message=_optional(result.get("message"), lambda value: text(value, "message")),
        info=_optional(result.get("info"), read_info) or {},
        trajectory=read_trajectory(points, levels, total_s),
        schedule=answer.get("schedule"),
        infeasibility=_optional(result.get("infeasibility"), read_infeasibility),
        decision=answer.get("decision"),
    )


def _optional(value: Any, read: Callable[[Any], T]) -> T | None:
    return None if value is None else read(value)


def read_values(value: Any, levels: int) -> tuple[float, ...]:
    """Validate an objective: a number, or a list with one number per level."""
    values = value if isinstance(value, list) else [value]
    if len(values) != levels:
        wanted = f"the instance has {levels} level{'s' * (levels > 1)}"
        raise FileFormatError(f"objective is {describe(value)}; {wanted}")
    return tuple(number(each, "objective") for each in values)


def read_bounds(value: Any, levels: int, sense: str = "min") -> tuple[dict[str, Any], ...]:
    """Validate bounds; keep the best of each level, source and proof, best first."""
    sign = 1 if sense == "min" else -1
    best: dict[tuple[int, str, str], dict[str, Any]] = {}
    for row in listed(value, "bounds"):
        bound = _bound(table(row, "a bound"), levels)
        of = (bound["level"], bound["source"], bound["proof"])
        if of not in best or sign * bound["value"] > sign * best[of]["value"]:
            best[of] = bound
    kept = sorted(best.values(), key=lambda bound: (bound["level"], -sign * bound["value"]))
    by_level = ([bound for bound in kept if bound["level"] == k] for k in range(levels))
    return tuple(bound for bounds in by_level for bound in bounds[:MAX_LISTED])


def _bound(row: Mapping[str, Any], levels: int) -> dict[str, Any]:
    """Validate one bound: a finite number, a source, a proof and an existing level."""
    source = text(row.get("source"), "a bound's source")
    if not source.strip():
        raise FileFormatError("a bound has no source")
    return {
        "value": number(row.get("value"), "a bound's value"),
        "source": source,
        "proof": word(row, "proof", PROOFS),
        "level": _level(row, levels),
        "certificate": _certificate(row),
    }


def _certificate(row: Mapping[str, Any]) -> str | None:
    """Return the text of a certificate; it is checked elsewhere."""
    found = row.get("certificate")
    if found is not None and (not isinstance(found, str) or len(found) > MAX_CERTIFICATE):
        refuse("a certificate", found, f"text of up to {MAX_CERTIFICATE:,} characters")
    return found


def read_infeasibility(value: Any) -> dict[str, Any]:
    """Validate a claim that no schedule exists: its source and proof."""
    row = table(value, "infeasibility")
    return {
        "source": text(row.get("source"), "the source of infeasibility"),
        "proof": word(row, "proof", PROOFS),
        "argument": text(row.get("argument", ""), "the argument of infeasibility"),
        "certificate": _certificate(row),
    }


def _level(row: Mapping[str, Any], levels: int) -> int:
    level = row.get("level", 0)
    if type(level) is not int or not 0 <= level < levels:
        wanted = f"the instance has {levels}, counted from 0"
        raise FileFormatError(f"level is {describe(level)}; {wanted}")
    return level


def read_trajectory(rows: Sequence[Any], levels: int, total_s: float) -> tuple[dict[str, Any], ...]:
    """Validate the points of a trajectory, each with all fields."""
    points = (table(row, "a point of the trajectory") for row in rows[:MAX_POINTS])
    objective, bound = (
        partial(number, what=f"trajectory.{name}") for name in ("objective", "bound")
    )
    return tuple(
        {
            "t_s": min(seconds(row, "t_s"), total_s),
            "objective": _optional(row.get("objective"), objective),
            "bound": _optional(row.get("bound"), bound),
            "level": _level(row, levels),
        }
        for row in points
    )


def read_info(value: Any) -> dict[str, Any]:
    """Validate a solver's remarks about itself; remarks that are too large are replaced."""
    entries = list(table(value, "info").items())[:MAX_LISTED]
    info = {clean(str(key)): _remark(entry) for key, entry in entries}
    size = len(json.dumps(info))
    if size <= MAX_INFO_BYTES:
        return info
    return {"left_out": f"{size:,} bytes of info; up to {MAX_INFO_BYTES:,} are kept"}


def read_measured(value: Any) -> dict[str, Any]:
    """Validate readings by metric and their provenance, or the reason why there are none."""
    given = table(value, "measured")
    if "reason" in given:
        return {"reason": text(given["reason"], "the reason of no readings")}
    if not given:
        return {}
    metrics = {}
    for name, row in list(table(given.get("metrics"), "measured.metrics").items())[:MAX_LISTED]:
        rows = listed(table(row, f"measured {name}").get("readings"), f"readings of {name}")
        readings = tuple(number(each, f"a reading of {name}") for each in rows[:MAX_POINTS])
        if readings:
            metrics[clean(str(name))] = readings
    found = Measurements(metrics).to_dict()
    return {**found, "provenance": read_info(given.get("provenance", {}))}


def _remark(value: Any, depth: int = 0) -> Any:
    """Return plain JSON of bounded depth; numbers that are not finite become null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if (
        value is None
        or isinstance(value, bool)
        or (isinstance(value, int) and abs(value) < LARGEST)
    ):
        return value
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {clean(str(key)): _remark(entry, depth + 1) for key, entry in value.items()}
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_remark(entry, depth + 1) for entry in value]
    return describe(value)


def table(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        refuse(what, value, "an object")
    return value


def listed(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list):
        refuse(what, value, "a list")
    return value


def word(data: Mapping[str, Any], key: str, allowed: Collection[str]) -> str:
    value = data.get(key)
    if not isinstance(value, str) or value not in allowed:
        refuse(key, value, f"one of {', '.join(allowed)}")
    return value


def text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        refuse(what, value, "text")
    return clean(value)


def clean(value: str) -> str:
    """Return printable text of bounded length."""
    value = value.encode("utf-8", "replace").decode().translate(CONTROL)
    return value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + "..."


def number(value: Any, what: str) -> float:
    """Validate a finite number."""
    return typed_values.number(value, what, -LARGEST, LARGEST)


def seconds(data: Mapping[str, Any], key: str) -> float:
    """Validate a finite time that is not negative."""
    value = number(data.get(key), key)
    if value < 0:
        raise FileFormatError(f"{key} is {value!r}; a time cannot be negative")
    return value
