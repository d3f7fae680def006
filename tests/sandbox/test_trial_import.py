"""A plug-in whose import no process survives is named, and does not end the runner."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from optbench.sandbox.process_tree import is_alive

PROGRAM = """
import sys
from optbench.sandbox.trial_import import try_imports
from optbench.errors import OptbenchError
try:
    try_imports({"solvers": ["fcfs", {"solver": "bad:x=1"}], "problems": 3}, \
patience_s=float(sys.argv[1]))
except OptbenchError as error:
    print(error)
else:
    print("survived", any("solvers.bad" in name for name in sys.modules))
"""

NOTES = """
import os, time
with open({note!r} + "~", "w") as file:
    file.write(str(os.getpid()))
os.rename({note!r} + "~", {note!r})
while True:
    time.sleep(1)
"""


def start(root: Path, source: str, patience_s: float = 60.0) -> subprocess.Popen[str]:
    (root / "optbench.toml").touch()
    (root / "solvers").mkdir()
    (root / "solvers" / "bad.py").write_text(source)
    words = [sys.executable, "-c", PROGRAM, str(patience_s)]
    env = {**os.environ, "OPTBENCH_WORKSPACE": str(root)}
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=root, env=env, stdout=pipe, stderr=pipe, text=True)


def run(root: Path, source: str, patience_s: float = 60.0) -> str:
    started = start(root, source, patience_s)
    said, errors = started.communicate(timeout=100)
    assert started.returncode == 0, errors
    return said.strip()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import os\nos._exit(0)", "importing it ends the process (exit code 0)"),
        ("import ctypes\nctypes.string_at(0)", "importing it ends the process (signal 11)"),
        (
            (
                "import sys\nprint('optbench imported solver other')\nsys.stdout.flush()\nraise "
                "GeneratorExit"
            ),
            "(exit code 1)",
        ),
    ],
)
def test_an_import_that_ends_its_process(tmp_path: Path, source: str, says: str) -> None:
    said = run(tmp_path, source)
    assert (
        said.startswith(f"solver 'bad' is unavailable: {tmp_path / 'solvers' / 'bad.py'}: ")
        and says in said
    )


def test_an_import_that_never_ends(tmp_path: Path) -> None:
    assert "importing it takes more than 0.1 s" in run(
        tmp_path, "while True:\n    pass", patience_s=0.1
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells nobody of a parent's end")
def test_an_import_that_never_ends_goes_with_a_killed_runner(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    started = start(tmp_path, NOTES.format(note=str(note)))
    until(note.exists)
    pid = int(note.read_text())
    assert pid != started.pid and is_alive(pid)
    started.kill()
    started.communicate()
    until(lambda: not is_alive(pid))


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "source", ["x = 1", "raise RuntimeError('told by whoever imports it')", "this is no Python"]
)
def test_other_errors_are_left_to_the_import_itself(tmp_path: Path, source: str) -> None:
    assert run(tmp_path, source) == "survived False"
