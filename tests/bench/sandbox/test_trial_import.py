"""A plug-in whose import no process survives is named, and does not end the runner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from optbench.bench.sandbox.trial_import import try_imports
from optbench.errors import OptbenchError
try:
    try_imports({"solvers": ["fcfs", {"solver": "bad:x=1"}], "problems": 3}, patience_s=float(sys.argv[1]))
except OptbenchError as error:
    print(error)
else:
    print("survived", any("solvers.bad" in name for name in sys.modules))
"""


def run(root: Path, source: str, patience_s: float = 60.0) -> str:
    (root / "optbench.toml").touch()
    (root / "solvers").mkdir()
    (root / "solvers" / "bad.py").write_text(source)
    words = [sys.executable, "-c", PROGRAM, str(patience_s)]
    env = {**os.environ, "OPTBENCH_WORKSPACE": str(root)}
    return subprocess.run(words, cwd=root, env=env, capture_output=True, text=True, check=True, timeout=100).stdout.strip()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import os\nos._exit(0)", "importing it ends the process (exit code 0)"),
        ("import ctypes\nctypes.string_at(0)", "importing it ends the process (signal 11)"),
        ("import sys\nprint('optbench imported solver other')\nsys.stdout.flush()\nraise GeneratorExit", "(exit code 1)"),
    ],
)
def test_an_import_that_ends_its_process(tmp_path: Path, source: str, says: str) -> None:
    said = run(tmp_path, source)
    assert said.startswith(f"solver 'bad' is unavailable: {tmp_path / 'solvers' / 'bad.py'}: ") and says in said


def test_an_import_that_never_ends(tmp_path: Path) -> None:
    assert "importing it takes more than 0.1 s" in run(tmp_path, "while True:\n    pass", patience_s=0.1)


@pytest.mark.parametrize("source", ["x = 1", "raise RuntimeError('told by whoever imports it')", "this is no Python"])
def test_other_errors_are_left_to_the_import_itself(tmp_path: Path, source: str) -> None:
    assert run(tmp_path, source) == "survived False"
