"""Gates and claims of a study, over the records that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from optbench.bench.claims.gates import GateResult, judge_gate
from optbench.bench.claims.ledger import ClaimResult, judge_claim
from optbench.bench.formulas.columns import Columns
from optbench.bench.records import Record
from optbench.bench.results import rows
from optbench.bench.study.planning import Plan


def evaluate(plan: Plan, records: Mapping[str, Record]) -> tuple[tuple[GateResult, ...], tuple[ClaimResult, ...]]:
    """Every gate and claim of a study; what hangs on a cell that has not been run is unknown, and says so."""
    return judge_gates(plan, records), judge_claims(plan, records)


def judge_gates(plan: Plan, records: Mapping[str, Record]) -> tuple[GateResult, ...]:
    columns = columns_of(plan, records) if plan.study.gates else None
    return () if columns is None else tuple(judge_gate(plan.study, name, columns) for name in plan.study.gates)


def judge_claims(plan: Plan, records: Mapping[str, Record]) -> tuple[ClaimResult, ...]:
    columns = columns_of(plan, records) if plan.study.claims else None
    return () if columns is None else tuple(judge_claim(plan.study, claim, columns) for claim in plan.study.claims)


def columns_of(plan: Plan, records: Mapping[str, Record]) -> Columns:
    """The study's cells; an instance that could not be made leaves nothing certain."""
    lost = [each for each in plan.made if each.error is not None]
    words = None
    if lost:
        first = lost[0]
        words = f"{len(lost)} of {len(plan.made)} instances could not be made: {first.target}, seed {first.seed}: {first.error}"
    return Columns(rows(plan, records), words)


def not_held(gates: Iterable[GateResult], claims: Iterable[ClaimResult]) -> bool:
    """Whether any gate or claim does not hold: exit code 6."""
    return not all([*(gate.holds for gate in gates), *(claim.holds for claim in claims)])
