"""Verify what a solver answered to an instance that is no schedule's, in a process of its own.

The code of a user's shape runs neither in the runner, which would then believe whatever that code
has changed there, nor in the solver's process, which could forge the verdict. The second process
is given the solver's answer as data; what it answers is validated like any other answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError
from optbench.execute.base import Job, JobOutcome
from optbench.execute.validate_answer import (
    MAX_LISTED,
    clean,
    listed,
    number,
    read_bounds,
    read_infeasibility,
    read_measured,
    read_refusal,
    read_solve,
    table,
    text,
)
from optbench.model.checks import Violation
from optbench.model.result import Bound
from optbench.model.verify import Verdict
from optbench.store.records import Reason
from optbench.store.run_store import Store
from optbench.study.cells import Cell
from optbench.study.declared import CellBudget

# Seconds that verifying and proving bounds again may take, at least; a cell that was given longer
# has as long.
VERIFY_S = 120.0
CLAIMS, FOLDER = ".claims.json", ".verify"
# Refusals of the second process that are about the answer; any other is about the shape.
OF_ANSWER = ("nonsense", "disagreement", "memory_limit")
MOST_METRICS = 200
# Pictures of a decision, and characters of each.
MOST_PICTURES, LONGEST_PICTURE = 4, 500_000


@dataclass(frozen=True)
class Verified:
    """The verdict on the decision, if there is one, the bounds with their labels, the decision.

    ``pictures`` are SVG by title; ``no_picture`` says why drawing failed. ``infeasibility`` is the
    core's own proof that no decision exists. ``measured`` has readings, where these were asked for.
    """

    verdict: Verdict | None
    bounds: tuple[Bound, ...]
    decision: Any
    pictures: Mapping[str, str] = field(default_factory=dict)
    no_picture: str | None = None
    infeasibility: dict[str, Any] | None = None
    measured: Mapping[str, Any] = field(default_factory=dict)


def work_of(key: str, folder: Path) -> tuple[Path, ...]:
    """Return what a cell leaves in the runner's work folder."""
    return folder / key, folder / f"{key}{CLAIMS}", folder / f"{key}{FOLDER}"


def verification(cell: Cell, store: Store, folder: Path, outcome: JobOutcome) -> Job | None:
    """Return the job that verifies an answer; None for an answer without anything to verify."""
    answer = outcome.answer
    if outcome.reason is not None or answer is None or "refusal" in answer:
        return None
    try:
        claimed = read_solve(answer, _levels(cell), outcome.total_s, cell.sense)
    except FileFormatError:  # the judge names the error
        return None
    infeasible = claimed.status == "infeasible"
    if claimed.decision is None and not claimed.bounds and not infeasible:
        return None
    _, claims, place = work_of(cell.key, folder)
    content = {
        "decision": claimed.decision,
        "bounds": claimed.bounds,
        "infeasible": infeasible,
    }
    claims.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    payload = {
        "instance_file": str(store.instance_file(cell.instance_hash, cell.shape)),
        "claims_file": str(claims),
        "target": cell.target,
        "readings": cell.budget.readings,
    }
    budget = CellBudget(
        time_limit_s=None,
        wall_limit_s=max(VERIFY_S, cell.budget.hard_wall_s),
        memory_limit_mb=cell.budget.memory_limit_mb,
    )
    return Job(cell.key, "verify", payload, budget, place)


def _levels(cell: Cell) -> int:
    return 1 if cell.shape is None else cell.shape.levels


def read_verified(outcome: JobOutcome | None, cell: Cell) -> Verified | Reason:
    """Validate the answer of the second process; a Reason where there is no verdict."""
    if outcome is None:
        return Verified(None, (), None)
    if outcome.reason is not None:
        return Reason("unverified", str(outcome.reason))
    answer = table(outcome.answer, "the verification")
    refusal = read_refusal(answer)
    if refusal is not None:
        kind, words = refusal
        return Reason(kind if kind in OF_ANSWER else "unverified", words)
    try:
        return _read(answer, _levels(cell), cell.sense)
    except FileFormatError as error:
        return Reason("unverified", f"verify: {error}")


def _read(answer: Mapping[str, Any], levels: int, sense: str) -> Verified:
    rows = read_bounds(answer.get("bounds"), levels, sense)
    bounds = tuple(Bound(row["value"], row["source"], row["proof"], row["level"]) for row in rows)
    said = answer.get("verdict")
    verdict = None if said is None else _verdict(table(said, "verdict"), levels)
    try:
        pictures, remark = _pictures(answer.get("pictures", {})), answer.get("no_picture")
    except FileFormatError as error:
        pictures, remark = {}, str(error)
    said_so = None if remark is None else text(remark, "no_picture")
    proof = answer.get("infeasibility")
    infeasibility = None if proof is None else read_infeasibility(proof)
    measured = read_measured(answer.get("measured", {}))
    decision = answer.get("decision")
    return Verified(verdict, bounds, decision, pictures, said_so, infeasibility, measured)


def _pictures(found: Any) -> dict[str, str]:
    """Validate pictures; a page shows them as images, in which no script runs."""
    out = {}
    for title, picture in list(table(found, "pictures").items())[:MOST_PICTURES]:
        if not isinstance(picture, str) or not picture.lstrip().startswith("<svg"):
            raise FileFormatError(f"picture {clean(title)!r} is no SVG text that begins with <svg")
        if len(picture) > LONGEST_PICTURE:
            most = f"at most {LONGEST_PICTURE:,} are shown"
            raise FileFormatError(f"picture {clean(title)!r}: {len(picture):,} characters; {most}")
        out[clean(title)] = picture
    return out


def _verdict(said: Mapping[str, Any], levels: int) -> Verdict:
    feasible = said.get("feasible")
    if not isinstance(feasible, bool):
        raise FileFormatError(f"feasible is {feasible!r:.40}; it must be true or false")
    violations = tuple(
        Violation(
            text(row.get("constraint"), "a violated constraint"),
            text(row.get("message"), "a violation"),
            number(row.get("amount"), "the amount of a violation"),
        )
        for row in listed(said.get("violations"), "violations")[:MAX_LISTED]
    )
    if feasible and violations:
        raise FileFormatError(f"feasible, although {violations[0]}")
    values = listed(said.get("objectives"), "objectives")
    if len(values) != levels * feasible:
        raise FileFormatError(f"{len(values)} objectives of a decision with feasible={feasible}")
    metrics = table(said.get("metrics"), "metrics")
    if len(metrics) > MOST_METRICS:
        raise FileFormatError(f"{len(metrics)} metrics; at most {MOST_METRICS} are kept")
    return Verdict(
        feasible,
        violations,
        tuple(number(value, "the objective") for value in values),
        {text(name, "a metric"): number(value, f"metric {name}") for name, value in metrics.items()}
        if feasible
        else {},
    )
