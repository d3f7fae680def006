"""Evaluate the gates and claims of a study over the records that exist."""

from __future__ import annotations

from collections.abc import Mapping

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.claim_ledger import ClaimResult, judge_claim
from optbench.evaluate.gates import GateResult, judge_gate
from optbench.evaluate.rows import Table, table
from optbench.store.records import Record
from optbench.study.planning import Plan


def evaluate(
    plan: Plan, records: Mapping[str, Record]
) -> tuple[tuple[GateResult, ...], tuple[ClaimResult, ...]]:
    """Evaluate every gate and claim of a study; what depends on a missing cell is unknown."""
    return evaluate_table(table(plan, records))


def evaluate_table(joined: Table) -> tuple[tuple[GateResult, ...], tuple[ClaimResult, ...]]:
    """Evaluate every gate and claim over a joined table."""
    study, columns = joined.plan.study, columns_of(joined)
    gates = tuple(judge_gate(study, name, columns) for name in study.gates)
    return gates, tuple(judge_claim(study, claim, columns) for claim in study.claims)


def judge_claims(plan: Plan, records: Mapping[str, Record]) -> tuple[ClaimResult, ...]:
    """Evaluate the claims alone."""
    if not plan.study.claims:
        return ()
    columns = columns_of(table(plan, records))
    return tuple(judge_claim(plan.study, claim, columns) for claim in plan.study.claims)


def columns_of(joined: Table) -> CellColumns:
    """Return the cells as columns; if an instance could not be made, every result is unknown."""
    every = joined.plan.made
    lost = [each for each in every if each.error is not None]
    words = None
    if lost:
        first = lost[0]
        words = (
            f"{len(lost)} of {len(every)} instances could not be made: {first.target}, seed "
            f"{first.seed}: {first.error}"
        )
    return CellColumns(joined.rows, words)
