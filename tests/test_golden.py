"""What was recorded in tests/golden comes out again (its README says how to record it)."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.golden.recording import FOLDER, compare, read

SCRIPT = FOLDER / "record.py"
MOST_BYTES = 1_500_000
# Built-in solvers of 20 November 2026.
NUM_SOLVERS = 31
# A new verb needs a command in command_cases.py.
VERBS = {
    "audit",
    "bound",
    "claims",
    "compile",
    "convert",
    "data",
    "doctor",
    "gpu",
    "init",
    "list",
    "new",
    "pareto",
    "quickstart",
    "report",
    "run",
    "schema",
    "simulate",
    "solve",
    "sync",
    "train",
    "tune",
    "ui",
    "verify",
}


def record_again(part: str, folder: Path, sample: bool) -> None:
    """In a process of its own: a process has one workspace, and other tests have theirs."""
    words = [sys.executable, str(SCRIPT), "--only", part, "--into", str(folder)]
    done = subprocess.run(
        [*words, *["--sample"] * sample], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def check(part: str, folder: Path, sample: bool) -> None:
    """Numbers, keys, codes and hashes are equal; texts that differ are a warning only."""
    record_again(part, folder, sample)
    recorded, found = read(part), read(part, folder)
    assert found.entries
    assert compare(recorded.entries, found.entries, whole=not sample) == []
    texts = compare(recorded.texts, found.texts, whole=not sample)
    if texts:
        warnings.warn(
            f"{len(texts)} texts differ from the recorded ones: {texts[:3]}", stacklevel=2
        )


def test_commands_of_the_sample_print_what_they_printed(tmp_path: Path) -> None:
    check("commands", tmp_path, sample=True)


@pytest.mark.slow
def test_all_commands_print_what_they_printed(data_dir: Path, tmp_path: Path) -> None:
    check("commands", tmp_path, sample=False)


def test_files_written_on_19_november_2026_are_read_as_they_were(tmp_path: Path) -> None:
    """A store, a bank, checkpoints, tuned parameters, instances and schedules."""
    check("fixtures", tmp_path, sample=False)


def test_the_sample_of_instances_is_decided_and_bounded_as_it_was(tmp_path: Path) -> None:
    check("solvers", tmp_path, sample=True)


@pytest.mark.slow
def test_all_instances_are_decided_and_bounded_as_they_were(tmp_path: Path) -> None:
    check("solvers", tmp_path, sample=False)


def test_rows_of_a_plain_study_are_what_they_were(tmp_path: Path) -> None:
    check("studies", tmp_path, sample=True)


@pytest.mark.slow
def test_rows_of_studies_of_each_kind_are_what_they_were(tmp_path: Path) -> None:
    check("studies", tmp_path, sample=False)


@pytest.mark.slow
def test_the_reference_week_is_what_it_was(data_dir: Path, tmp_path: Path) -> None:
    check("geo_reference", tmp_path, sample=False)


def test_some_200_instances_of_all_families_are_decided_by_every_solver() -> None:
    entries = read("solvers").entries
    families = {entry["name"].partition(":")[0].partition(" ")[0] for entry in entries}
    assert len(entries) >= 200
    assert families == {"jobshop", "flexible_jobshop", "rcpsp", "gpu_dag", "night_batch", "geo_dc"}
    decided = {
        solver for entry in entries for solver, run in entry["runs"].items() if run[1] is not None
    }
    assert len(decided) == NUM_SOLVERS


def test_the_recorded_commands_cover_every_verb_and_every_exit_code() -> None:
    entries = read("commands").entries
    verbs = {entry["name"].split()[0] for entry in entries}
    assert len(entries) >= 40 and {entry["code"] for entry in entries} == {0, 1, 2, 3, 4, 5, 6, 130}
    assert verbs == VERBS


def test_the_comparison_finds_what_differs() -> None:
    old = [{"name": "a", "document": {"x": 1.0, "y": [1, 2], "z": None}}]
    assert (
        compare(old, [{"name": "a", "document": {"x": 1.0 + 1e-13, "y": [1, 2], "z": None}}]) == []
    )
    changed = [{"name": "a", "document": {"x": 1.0 + 1e-11, "y": [1, 3, 4], "w": 0}}]
    assert [line.partition(":")[0] for line in compare(old, changed)] == [
        "a.document.w", "a.document.x", "a.document.y", "a.document.y[1]", "a.document.z",
    ]  # fmt: skip
    # A whole number is no float, and true is no 1.
    assert compare([{"name": "a", "v": 1}], [{"name": "a", "v": 1.0}]) != []
    assert compare([{"name": "a", "v": 1}], [{"name": "a", "v": True}]) != []
    assert compare(old, [], whole=True) == ["a: recorded, not found"]
    assert compare(old, [{"name": "b"}], whole=False) == ["b: not recorded"]


def test_the_golden_files_are_small() -> None:
    files = [
        path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
