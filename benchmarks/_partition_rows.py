"""Rows of benchmarks/partitioning.py: runs with their improvements, and first answers alone."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._cluster_runs import RESULTS, ROOT

RAW = RESULTS / "raw" / "partitioning.jsonl"
FIRST_RAW = RESULTS / "raw" / "partition_first_answers.jsonl"
BALANCES = {"metis": "", "3%": ",imbalance=0.03"}
OURS, BEST, DEFAULT = "mis_spectral", "metis_best", "metis"
METHODS = (OURS, BEST, DEFAULT, "ldg", "random_parts")
# The commit of rows that have none.
FIRST_COMMIT = "5f763ea8"

Answer = tuple[float, float]


@dataclass(frozen=True)
class PartitionRow:
    """One run; ``points`` are its improvements: (seconds, cut), ``commit`` is mis_spectral's."""

    graph: str
    parts: int
    balance: str
    seed: int
    seconds: float
    method: str
    nodes: int
    edges: int
    max_part: int
    cut: float | None
    imbalance: float | None
    points: list[Answer]
    commit: str = FIRST_COMMIT

    @property
    def cell(self) -> tuple[str, int, str, int]:
        return self.graph, self.parts, self.balance, self.seed

    @property
    def key(self) -> tuple[Any, ...]:
        return *self.cell, self.method, self.seconds

    def cut_by(self, seconds: float) -> float | None:
        """The cut that was reached after so many seconds."""
        return min((cut for at, cut in self.points if at <= seconds), default=None)


@dataclass(frozen=True)
class FirstAnswerRow:
    """First answers of mis_spectral and METIS in turn, several times, as (seconds, cut)."""

    graph: str
    parts: int
    balance: str
    seed: int
    commit: str
    ours: list[Answer]
    metis: list[Answer]

    @property
    def cell(self) -> tuple[str, int, str, int]:
        return self.graph, self.parts, self.balance, self.seed

    @property
    def quickest(self) -> tuple[Answer, Answer]:
        return min(self.ours), min(self.metis)


def rows_so_far() -> list[PartitionRow]:
    rows = [PartitionRow(**each) for each in read_lines(RAW)]
    return list({row.key: row for row in rows}.values())


def first_answers_so_far() -> dict[Any, FirstAnswerRow]:
    rows = [FirstAnswerRow(**each) for each in read_lines(FIRST_RAW)]
    return {row.cell: row for row in rows}


def read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def append_line(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


def solver_commit() -> str:
    """The last commit that changed mis_spectral."""
    command = ["git", "log", "-1", "--format=%h", "--", "solvers/mis_spectral"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return found.stdout.strip()
