"""What a study was expected to show, and what it shows: gates (hold or fail) and claims (ours beside a published figure)."""

from optbench.bench.claims.gates import GateResult
from optbench.bench.claims.judging import evaluate, evaluate_table, judge_claims, not_held
from optbench.bench.claims.ledger import ClaimResult

__all__ = ["ClaimResult", "GateResult", "evaluate", "evaluate_table", "judge_claims", "not_held"]
