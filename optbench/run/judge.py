"""The judge: turn the untrusted answer of a cell's process into a record, and verify its schedule
again; the decision of any other shape was verified in a second process (``run.verification``).

Objective, metrics, gap and status follow from the instance, the schedule and the checked bounds.
There is a record for every answer; an invalid one is a failure of the kind ``nonsense``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from optbench.bounds.lp.certificates import CertificateError
from optbench.bounds.proving import labelled, prove_infeasible
from optbench.errors import ContradictionError, FileFormatError
from optbench.execute.base import JobOutcome
from optbench.execute.validate_answer import (
    SolveAnswer,
    clean,
    listed,
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
from optbench.outcome import level_of, outcome_of
from optbench.plugins.schedule_shape import shape_of
from optbench.plugins.training_energy import CHECKPOINT, read_training_energy
from optbench.run.verification import Verified, read_verified
from optbench.store.records import Reason, Record, code_version, machine
from optbench.study.cells import Cell

TERMINATIONS = {
    "time_limit": "time_limit",
    "cpu_limit": "time_limit",
    "memory_limit": "memory_limit",
}
# Exceptions of numpy and Python on invalid numbers, and of the parser on data that is not a
# schedule.
UNREADABLE = (
    FileFormatError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
SHOWN_VIOLATIONS = 3
# Pictures of a decision, as SVG by title.
PICTURES = "pictures.json"
# At most this many certificates per level, best first, are proved again; an honest solver has two
# or three.
MOST_PROOFS = 4
# More levels than any objective has. An answer that is kept was already read with its instance's
# number of levels.
ANY_LEVELS = 1000


def judge(cell: Cell, outcome: JobOutcome, instance: Any, began_at: str) -> Record:
    """Return the record of a cell; ``instance`` is a stand-in where it is no schedule's."""
    base = Record(
        cell,
        status="error",
        termination="crashed",
        total_s=round(outcome.total_s, 6),
        cpu_s=round(outcome.cpu_s, 6),
        peak_memory_mb=round(outcome.peak_memory_mb, 1),
        began_at=began_at,
        machine={**(outcome.machine or machine()), "sandbox": dict(outcome.sandbox)},
        code_version=code_version(),
        labelled=True,
        energy=_energy(cell, outcome),
    )
    if outcome.reason is not None:
        return _without_answer(base, outcome.reason)
    try:
        record = _judge_answer(base, outcome, instance)
    except FileFormatError as error:
        return replace(base, reason=Reason("nonsense", str(error)))
    except ContradictionError as error:
        return replace(base, reason=Reason("false_bound", str(error)))
    if outcome.left_processes and record.reason is None:
        words = f"processes still running after the answer, killed: {outcome.left_processes}"
        return as_failed(record, Reason("left_processes", words))
    return record


def _energy(cell: Cell, outcome: JobOutcome) -> dict[str, Any]:
    """Return what the cell drew, and what the training of its checkpoint says that it drew."""
    given = cell.params.get(CHECKPOINT)
    training = None if given is None else read_training_energy(Path(given))
    return {**outcome.energy} if training is None else {**outcome.energy, "training": training}


def as_failed(record: Record, reason: Reason) -> Record:
    """Return the record of a cell whose result does not count, for a reason found afterwards."""
    return replace(
        record, status="error", reason=reason, objective=None, gap=None, verified=False, metrics={}
    )


def kept_files(outcome: JobOutcome, record: Record) -> dict[str, bytes]:
    """Return the files kept beside the record: output, schedule, trajectory, an invalid answer."""
    out: dict[str, bytes] = {}
    if outcome.output:
        out["output.txt"] = outcome.output.encode("utf-8", "replace")
    answer = outcome.answer if isinstance(outcome.answer, Mapping) else {}
    kept: dict[str, Any] = {}
    if isinstance(answer.get("result"), Mapping) and "refusal" not in answer:
        kept = {
            "schedule.json": answer.get("schedule"),
            "trajectory.json": _trajectory(answer["result"], outcome.total_s),
        }
    if record.cell.shape is not None and kept:
        found = read_verified(outcome.check, record.cell)
        decision, pictures = answer.get("decision"), None
        if isinstance(found, Verified):
            decision, pictures = found.decision, dict(found.pictures) or None
        trajectory = kept["trajectory.json"]
        kept = {"decision.json": decision, "trajectory.json": trajectory, PICTURES: pictures}
    if record.reason is not None and record.reason.kind == "nonsense":
        kept = {"answer.json": outcome.answer}
    for name, value in kept.items():
        if isinstance(value, (dict, list)):
            try:
                out[name] = json.dumps(value).encode()
            except (ValueError, TypeError, RecursionError):  # the record names the error
                continue
    return out


def _trajectory(result: Mapping[str, Any], total_s: float) -> list[Any] | None:
    try:
        rows = listed(result.get("trajectory"), "trajectory")
        return list(read_trajectory(rows, ANY_LEVELS, total_s))
    except FileFormatError:
        return None


def _without_answer(base: Record, reason: Reason) -> Record:
    reason = replace(reason, message=clean(reason.message))  # it may quote the output of a process
    return replace(base, reason=reason, termination=TERMINATIONS.get(reason.kind, "crashed"))


def _judge_answer(base: Record, outcome: JobOutcome, instance: Any) -> Record:
    answer = outcome.answer
    if not isinstance(answer, Mapping):
        raise FileFormatError(f"the answer is {type(answer).__name__}; it must be an object")
    refusal = read_refusal(answer)
    if refusal is not None:
        return _without_answer(base, Reason(*refusal))
    levels, sense = shape_of(instance).num_levels(instance), base.cell.sense
    if base.cell.kind == "bound":
        # This process runs the core and no solver, so that a bound that it labels certified was
        # proved there.
        claimed = read_bounds(answer.get("bounds"), levels, sense)
        wall_s = seconds(answer, "inside_s")
        bounds = tuple(
            Bound(row["value"], row["source"], row["proof"], row["level"]) for row in claimed
        )
        record = replace(base, status="unknown", termination="finished")
        return replace(_bounded(record, bounds, instance), wall_s=min(wall_s, base.total_s))
    said = read_solve(answer, levels, base.total_s, sense)
    if base.cell.shape is None:
        return _judge_schedule(base, said, instance)
    found = read_verified(outcome.check, base.cell)
    if isinstance(found, Reason):
        return replace(base, reason=found)
    verdict = None if said.status == "error" else found.verdict
    infeasibility = None
    if said.status == "infeasible":
        claim = {"source": "the solver", "argument": "", **(said.infeasibility or {})}
        denial = {"source": claim["source"], "proof": "solver", "argument": claim["argument"]}
        proof = found.infeasibility
        infeasibility = denial if proof is None else {key: proof[key] for key in denial}
    record = _judge_solve(base, said, instance, verdict, found.bounds, infeasibility)
    if record.verified:
        record = replace(record, measured=found.measured)
    if found.no_picture is None:
        return record
    return replace(record, info={**record.info, "no_picture": found.no_picture})


def _judge_schedule(base: Record, claimed: SolveAnswer, instance: Instance) -> Record:
    schedule = None if claimed.status == "error" else claimed.schedule
    verdict = None if schedule is None else _verdict_of(schedule, instance)
    bounds = labelled_bounds(
        claimed.bounds, instance, () if verdict is None else verdict.objectives
    )
    infeasibility = _infeasibility(claimed, instance)
    return _judge_solve(base, claimed, instance, verdict, bounds, infeasibility)


def _judge_solve(
    base: Record,
    claimed: SolveAnswer,
    instance: Any,
    verdict: Verdict | None,
    bounds: tuple[Bound, ...],
    infeasibility: dict[str, Any] | None,
) -> Record:
    record = replace(
        _bounded(base, bounds, instance),
        status=claimed.status,
        termination=claimed.termination,
        infeasibility=infeasibility,
        violations=claimed.violations,
        wall_s=claimed.wall_s,
        time_to_first_s=claimed.time_to_first_s,
        message=claimed.message,
        info=claimed.info,
    )
    if claimed.status == "error":
        return replace(
            record, reason=Reason("crashed", claimed.message or "the solver raised an exception")
        )
    if verdict is None:
        return _without_schedule(record, claimed)
    if not verdict.feasible:
        violations = tuple(map(str, verdict.violations))
        return as_failed(replace(record, violations=violations), _infeasible_reason(violations))
    _compare(claimed, verdict, base.cell)
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


def _bounded(record: Record, bounds: tuple[Bound, ...], instance: Any) -> Record:
    """Return the record with its bounds and the best of them."""
    low = outcome_of(instance, None, bounds).bound
    return replace(record, bound=low, bounds=tuple(bound.to_dict() for bound in bounds))


def labelled_bounds(
    claimed: tuple[dict[str, Any], ...], instance: Instance, objectives: tuple[float, ...]
) -> tuple[Bound, ...]:
    """Return bounds with the labels that their certificates justify, for each level with the levels
    before it fixed at these objectives.

    Where the process fixed a level at another value than its schedule has, the constraints differ
    and the label is ``solver``.
    """
    levels = [level_of(instance, k, objectives) for k in range(instance.objective.num_levels)]
    found, left = [], dict.fromkeys(range(len(levels)), MOST_PROOFS)
    for row in claimed:
        k = row["level"]
        level = levels[k]
        said = Bound(row["value"], row["source"], row["proof"], k, row["certificate"])
        claims = said.proof != "solver" and said.certificate is not None
        if level is None or not claims or left[k] == 0:
            found.append(replace(said, proof="solver"))
        else:
            left[k] -= 1
            found.append(labelled(level, said, costly=False))
    return tuple(found)


def _infeasibility(claimed: SolveAnswer, instance: Instance) -> dict[str, Any] | None:
    """Return the claim that no schedule exists, certified only where its certificate proves it."""
    if claimed.status != "infeasible":
        return None
    said = claimed.infeasibility or {"source": "the solver", "argument": "", "certificate": None}
    try:
        if said["certificate"] is not None:
            first = instance.with_objective(instance.objective.level(0))
            return prove_infeasible(first, said["certificate"]).to_dict()
    except CertificateError:
        pass
    return {"source": said["source"], "proof": "solver", "argument": said["argument"]}


def _without_schedule(record: Record, claimed: SolveAnswer) -> Record:
    if claimed.violations:
        return as_failed(record, _infeasible_reason(claimed.violations))
    if claimed.status in ("optimal", "feasible") or claimed.objective is not None:
        found = f"status is {claimed.status!r}, objective {claimed.objective}"
        decision = "schedule" if record.cell.shape is None else "decision"
        raise FileFormatError(f"{found}, and there is no {decision}")
    return record


def _infeasible_reason(violations: tuple[str, ...]) -> Reason:
    return Reason(
        "infeasible", "; ".join(violations[:SHOWN_VIOLATIONS]) or "it violates a constraint"
    )


def _verdict_of(schedule: Any, instance: Instance) -> Verdict:
    try:
        with np.errstate(all="ignore"):
            return verify(instance, schedule_from_dict(schedule, instance))
    except UNREADABLE as error:
        raise FileFormatError(f"the schedule: {error}") from None


def _compare(claimed: SolveAnswer, verdict: Verdict, cell: Cell) -> None:
    """Compare the claimed objective, status and trajectory with the verified result."""
    sense, decision = cell.sense, "schedule" if cell.shape is None else "decision"
    if claimed.objective != verdict.objectives:
        found = f"the verifier computes {verdict.objectives}"
        raise FileFormatError(f"the process reports the objective {claimed.objective}, but {found}")
    if claimed.status in ("infeasible", "unbounded"):
        raise FileFormatError(f"status is {claimed.status!r}, but the {decision} is feasible")
    last = len(verdict.objectives) - 1
    values = [
        row["objective"]
        for row in claimed.trajectory
        if row["level"] == last and row["objective"] is not None
    ]
    best = min(values, default=None) if sense == "min" else max(values, default=None)
    sign = 1 if sense == "min" else -1
    if best is not None and sign * best < sign * verdict.objectives[last]:
        found = f"the verifier computes {verdict.objectives[last]!r}"
        raise FileFormatError(f"the trajectory has an objective of {best!r}, but {found}")
