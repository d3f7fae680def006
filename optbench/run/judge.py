"""The judge: from what a cell's process says to a record. The process is not trusted, its schedule is verified here again.

Objective, metrics, gap and status follow from the instance, the schedule and the checked bounds. Whatever the process says,
there is a record of it in the end; an answer that cannot be one is a failure called ``nonsense``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from optbench.bounds.lp.certificates import CertificateError
from optbench.bounds.proving import labelled, prove_infeasible
from optbench.errors import ContradictionError, FileFormatError
from optbench.execute.base import JobOutcome
from optbench.execute.validate_answer import (
    Nonsense,
    Told,
    clean,
    read_bounds,
    read_refusal,
    read_solve,
    read_trajectory,
    seconds,
)
from optbench.model.files.schedule_json import schedule_from_dict
from optbench.model.instance import Instance
from optbench.model.result import Bound
from optbench.model.verify import Verdict, verify
from optbench.outcome import best_by_level, level_of, outcome_of, value_of
from optbench.store.records import Reason, Record, code_version, machine
from optbench.study.cells import Cell

TERMINATIONS = {"time_limit": "time_limit", "cpu_limit": "time_limit", "memory_limit": "memory_limit"}
# What numpy and Python may raise on numbers that nobody should return, and the parser on what is no schedule.
UNREADABLE = (FileFormatError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
SHOWN_VIOLATIONS = 3
# Certificates per level, the best first, that are proved again; an honest solver has two or three.
MOST_PROOFS = 4
# More than any objective has: what is kept of an answer was read with the number of its instance before.
ANY_LEVELS = 1000


def judge(cell: Cell, outcome: JobOutcome, instance: Instance, began_at: str) -> Record:
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
        labelled=True,
    )
    if outcome.reason is not None:
        return _without_answer(base, outcome.reason)
    try:
        record = _judged(base, outcome.answer, instance)
    except Nonsense as error:
        return replace(base, reason=Reason("nonsense", str(error)))
    except ContradictionError as error:
        return replace(base, reason=Reason("false_bound", str(error)))
    if outcome.left and record.reason is None:
        return failed(record, Reason("left_processes", f"processes still running after the answer, killed: {outcome.left}"))
    return record


def failed(record: Record, reason: Reason) -> Record:
    """The record of a cell whose result does not count, for a reason that shows only afterwards."""
    return replace(record, status="error", reason=reason, objective=None, gap=None, verified=False, metrics={})


def files(outcome: JobOutcome, record: Record) -> dict[str, bytes]:
    """What is kept of a cell beside its record: what its process printed, its schedule and trajectory; nonsense as it came."""
    out: dict[str, bytes] = {}
    if outcome.output:
        out["output.txt"] = outcome.output.encode("utf-8", "replace")
    answer = outcome.answer if isinstance(outcome.answer, Mapping) else {}
    kept: dict[str, Any] = {}
    if isinstance(answer.get("result"), Mapping) and "refusal" not in answer:
        kept = {"schedule.json": answer.get("schedule"), "trajectory.json": _trajectory(answer["result"], outcome.total_s)}
    if record.reason is not None and record.reason.kind == "nonsense":
        kept = {"answer.json": outcome.answer}
    for name, value in kept.items():
        if isinstance(value, (dict, list)):
            try:
                out[name] = json.dumps(value).encode()
            except (ValueError, TypeError, RecursionError):  # the record says what is wrong with it
                continue
    return out


def _trajectory(result: Mapping[str, Any], total_s: float) -> list[Any] | None:
    try:
        return list(read_trajectory(result, ANY_LEVELS, total_s))
    except Nonsense:
        return None


def _without_answer(base: Record, reason: Reason) -> Record:
    reason = replace(reason, message=clean(reason.message))  # it may quote the last words of a process
    return replace(base, reason=reason, termination=TERMINATIONS.get(reason.kind, "crashed"))


def _judged(base: Record, answer: Any, instance: Instance) -> Record:
    if not isinstance(answer, Mapping):
        raise Nonsense(f"the answer is {type(answer).__name__}; it must be an object")
    refusal = read_refusal(answer)
    if refusal is not None:
        return _without_answer(base, Reason(*refusal))
    levels = instance.objective.num_levels
    if base.cell.kind == "bound":
        # Its process runs the core alone, and nothing of a plug-in: what it calls certified has been proved there.
        told, wall_s = read_bounds(answer.get("bounds"), levels), seconds(answer, "inside_s")
        bounds = tuple(Bound(row["value"], row["source"], row["proof"], row["level"]) for row in told)
        lows = [None if best is None else best.value for best in best_by_level(bounds, levels)]
        return replace(
            base,
            status="unknown",
            termination="finished",
            bounds=tuple(bound.to_dict() for bound in bounds),
            bound=value_of(lows),
            wall_s=min(wall_s, base.total_s),
        )
    return _solved(base, read_solve(answer, levels, base.total_s), instance)


def _solved(base: Record, told: Told, instance: Instance) -> Record:
    verdict = None if told.schedule is None or told.status == "error" else _verified(told.schedule, instance)
    bounds = labelled_bounds(told.bounds, instance, () if verdict is None else verdict.objectives)
    lows = [None if best is None else best.value for best in best_by_level(bounds, instance.objective.num_levels)]
    record = replace(
        base,
        status=told.status,
        termination=told.termination,
        bound=value_of(lows),
        bounds=tuple(bound.to_dict() for bound in bounds),
        infeasibility=_infeasibility(told, instance),
        violations=told.violations,
        wall_s=told.wall_s,
        time_to_first_s=told.time_to_first_s,
        message=told.message,
        info=told.info,
    )
    if told.status == "error":
        return replace(record, reason=Reason("crashed", told.message or "the solver raised an exception"))
    if verdict is None:
        return _without_schedule(record, told)
    if not verdict.feasible:
        violations = tuple(map(str, verdict.violations))
        return failed(replace(record, violations=violations), _infeasible(violations))
    _compare(told, verdict)
    found = outcome_of(instance, verdict, bounds)
    return replace(
        record,
        status="optimal" if found.is_optimal else "feasible",
        objective=found.objective,
        gap=found.gap,
        verified=True,
        violations=(),
        metrics=found.metrics,
    )


def labelled_bounds(
    told: tuple[dict[str, Any], ...], instance: Instance, objectives: tuple[float, ...]
) -> tuple[Bound, ...]:
    """Bounds under the labels that their certificates deserve: of each level, with those before it at these objectives.

    Where the process held a level at another value than its schedule has, the rows are others, and the label is ``solver``.
    """
    levels = [level_of(instance, k, objectives) for k in range(instance.objective.num_levels)]
    found, left = [], dict.fromkeys(range(len(levels)), MOST_PROOFS)
    for row in told:
        k = row["level"]
        level, said = levels[k], Bound(row["value"], row["source"], row["proof"], k, row["certificate"])
        claims = said.proof != "solver" and said.certificate is not None
        if level is None or not claims or left[k] == 0:
            found.append(replace(said, proof="solver"))
        else:
            left[k] -= 1
            found.append(labelled(level, said, costly=False))
    return tuple(found)


def _infeasibility(told: Told, instance: Instance) -> dict[str, Any] | None:
    """The claim that no schedule exists: certified where its certificate proves it here, else that of the solver."""
    if told.status != "infeasible":
        return None
    said = told.infeasibility or {"source": "the solver", "argument": "", "certificate": None}
    try:
        if said["certificate"] is not None:
            first = instance.with_objective(instance.objective.level(0))
            return prove_infeasible(first, said["certificate"]).to_dict()
    except CertificateError:
        pass
    return {"source": said["source"], "proof": "solver", "argument": said["argument"]}


def _without_schedule(record: Record, told: Told) -> Record:
    if told.violations:
        return failed(record, _infeasible(told.violations))
    if told.status in ("optimal", "feasible") or told.objective is not None:
        raise Nonsense(f"status is {told.status!r}, objective {told.objective}, and there is no schedule")
    return record


def _infeasible(violations: tuple[str, ...]) -> Reason:
    return Reason("infeasible", "; ".join(violations[:SHOWN_VIOLATIONS]) or "it breaks a constraint")


def _verified(schedule: Any, instance: Instance) -> Verdict:
    try:
        with np.errstate(all="ignore"):
            return verify(instance, schedule_from_dict(schedule, instance))
    except UNREADABLE as error:
        raise Nonsense(f"the schedule: {error}") from None


def _compare(told: Told, verdict: Verdict) -> None:
    """What the process says must be what is found: objective, status, and a trajectory that is nowhere better than its end."""
    if told.objective != verdict.objectives:
        raise Nonsense(f"the process says an objective of {told.objective}, the verifier finds {verdict.objectives}")
    if told.status in ("infeasible", "unbounded"):
        raise Nonsense(f"status is {told.status!r}, and the schedule is verified")
    last = len(verdict.objectives) - 1
    values = [row["objective"] for row in told.trajectory if row["level"] == last and row["objective"] is not None]
    if values and min(values) < verdict.objectives[last]:
        raise Nonsense(f"the trajectory has an objective of {min(values)!r}, the verifier finds {verdict.objectives[last]!r}")
