"""A study that reports what its parameters were tuned on says so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from optbench.study.study_file import read

TUNED = """
solver = "fixed_dvfs"
[params]
low_clock = 0.4
[provenance]
problems = ["gpu_dag:tasks=6", "gpu_dag:tasks=9"]
seeds = [3, 4, 5]
"""


def table(file: Path, **changes: Any) -> dict[str, Any]:
    return {
        "problems": ["gpu_dag:tasks=6"],
        "solvers": ["fcfs", f"fixed_dvfs:params={file}"],
        "seeds": [1, 4, 5],
    } | changes


def test_seeds_of_the_search_are_named(tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(TUNED)
    with pytest.warns(
        UserWarning,
        match=r"was tuned on seeds \[4, 5\] of gpu_dag:tasks=6, which study 's' reports",
    ):
        read(table(file), tmp_path / "s.toml")
    entry = {"name": "tuned", "solver": f"fixed_dvfs:params={file}"}
    with pytest.warns(UserWarning, match=r"seeds \[4, 5\]"):
        read(table(file, solvers=[entry]), tmp_path / "s.toml")


def test_other_seeds_and_other_problems_are_fair(tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(TUNED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(table(file, seeds=[0, 1, 2]), tmp_path / "s.toml")
        read(table(file, problems=["gpu_dag:tasks=7"]), tmp_path / "s.toml")
        file.write_text(TUNED.partition("[provenance]")[0])
        read(table(file), tmp_path / "s.toml")
