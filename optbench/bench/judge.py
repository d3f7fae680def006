"""The judge: from what a cell's process says to a record. The process is not trusted, its schedule is verified here again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from optbench.bench.executor.base import Outcome
from optbench.bench.records import Reason, Record, code_version, machine
from optbench.bench.study.cells import Cell
from optbench.errors import ContradictionError, FileFormatError
from optbench.model.files import schedule_from_dict
from optbench.model.instance import Instance
from optbench.model.measures import check_bound, gap
from optbench.model.verify import Verdict, verify

# What of a result is taken as the solver says it; everything else is computed here.
TOLD = ("wall_s", "time_to_first_s", "message", "info", "bounds", "violations")
TERMINATIONS = {"time_limit": "time_limit", "cpu_limit": "time_limit", "memory_limit": "memory_limit"}


class Nonsense(Exception):
    """An answer that is none."""


def judge(cell: Cell, outcome: Outcome, instance: Instance, began_at: str) -> Record:
    """The record of a cell."""
    base = Record(
        cell,
        status="error",
        termination="crashed",
        total_s=round(outcome.total_s, 6),
        cpu_s=round(outcome.cpu_s, 6),
        peak_memory_mb=round(outcome.peak_memory_mb, 1),
        began_at=began_at,
        machine={**machine(), "sandbox": dict(outcome.sandbox)},
        code_version=code_version(),
    )
    reason = outcome.reason or _refusal(outcome.answer or {})
    if reason is not None:
        return replace(base, reason=reason, termination=TERMINATIONS.get(reason.kind, "crashed"))
    assert outcome.answer is not None
    try:
        record = _bounds(base, outcome.answer) if cell.kind == "bound" else _solved(base, outcome.answer, instance)
    except (Nonsense, FileFormatError, KeyError, TypeError, ValueError, AttributeError) as error:
        return replace(base, reason=Reason("nonsense", f"{type(error).__name__}: {error}"))
    except ContradictionError as error:
        return replace(base, reason=Reason("false_bound", str(error)))
    if outcome.left and record.reason is None:
        return failed(record, Reason("left_processes", f"processes still running after the answer, killed: {outcome.left}"))
    return record


def failed(record: Record, reason: Reason) -> Record:
    """The record of a cell whose result does not count, for a reason that shows only afterwards."""
    return replace(record, status="error", reason=reason, objective=None, gap=None, verified=False)


def _refusal(answer: Mapping[str, Any]) -> Reason | None:
    return Reason(str(answer["refusal"]), str(answer.get("message", ""))) if "refusal" in answer else None


def _bounds(base: Record, answer: Mapping[str, Any]) -> Record:
    bounds = tuple(_bound(each) for each in answer["bounds"])
    best = max((each["value"] for each in bounds), default=None)
    return replace(base, status="unknown", termination="finished", bounds=bounds, bound=best, wall_s=answer["inside_s"])


def _bound(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A bound as it must be: a finite number, where it comes from, and how it is proved."""
    value = entry["value"]
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Nonsense(f"a bound of {value!r}")
    return {"value": float(value), "source": str(entry["source"]), "proof": str(entry["proof"]), "level": int(entry["level"])}


def _solved(base: Record, answer: Mapping[str, Any], instance: Instance) -> Record:
    result = answer["result"]
    told = {key: result[key] for key in TOLD} | {"bounds": tuple(_bound(each) for each in result["bounds"])}
    told["violations"] = tuple(map(str, told["violations"]))
    record = replace(base, status=str(result["status"]), termination=str(result["termination"]), **told)
    if result["status"] == "error":
        return replace(record, reason=Reason("crashed", str(result["message"])))
    lows = tuple(_best(record.bounds, level) for level in range(instance.objective.num_levels))
    record = replace(record, bound=_value(lows))
    if answer["schedule"] is None:
        if record.violations:
            return replace(record, reason=Reason("infeasible", "; ".join(record.violations[:3])))
        return record
    verdict = verify(instance, schedule_from_dict(answer["schedule"], instance))
    if not verdict.feasible:
        return replace(record, reason=Reason("infeasible", "; ".join(map(str, verdict.violations[:3]))))
    _compare(result, verdict)
    gaps = tuple(gap(value, low) for value, low in zip(verdict.objectives, lows, strict=True))
    for value, low in zip(verdict.objectives, lows, strict=True):
        if low is not None:
            check_bound(value, low, "the solver", instance.name)
    return replace(record, objective=_value(verdict.objectives), gap=_value(gaps), verified=True, metrics=verdict.metrics)


def _compare(result: Mapping[str, Any], verdict: Verdict) -> None:
    """The objective inside the process and here must be one and the same."""
    told = result["objective"]
    told = tuple(told) if isinstance(told, list) else (told,)
    if told != verdict.objectives:
        raise Nonsense(f"the process says an objective of {told}, the verifier finds {verdict.objectives}")


def _best(bounds: tuple[Mapping[str, Any], ...], level: int) -> float | None:
    return max((each["value"] for each in bounds if each["level"] == level), default=None)


def _value(values: tuple[float | None, ...]) -> Any:
    """A number for one level, a tuple for several, None when any is missing."""
    if any(value is None for value in values):
        return None
    return values[0] if len(values) == 1 else values


def files(outcome: Outcome) -> dict[str, bytes]:
    """What is kept of a cell beside its record."""
    out: dict[str, bytes] = {}
    if outcome.output:
        out["output.txt"] = outcome.output.encode()
    answer = outcome.answer or {}
    if isinstance(answer.get("schedule"), dict):
        out["schedule.json"] = json.dumps(answer["schedule"]).encode()
    result = answer.get("result")
    if isinstance(result, dict):
        out["trajectory.json"] = json.dumps(result.get("trajectory", [])).encode()
    return out
