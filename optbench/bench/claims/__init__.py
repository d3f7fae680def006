"""What a study was expected to show, and what it shows: gates (hold or fail) and claims (ours beside a published figure)."""

from optbench.bench.claims.gates import GateResult
from optbench.bench.claims.judging import evaluate, judge_claims, judge_gates, not_held
from optbench.bench.claims.ledger import ClaimResult

__all__ = ["ClaimResult", "GateResult", "evaluate", "judge_claims", "judge_gates", "not_held"]
