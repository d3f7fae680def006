"""Executors run jobs in processes of their own and say what became of each."""

from optbench.bench.executor.base import Executor, Job, Outcome
from optbench.bench.executor.local import Loaded, LocalExecutor

__all__ = ["Executor", "Job", "Loaded", "LocalExecutor", "Outcome"]
