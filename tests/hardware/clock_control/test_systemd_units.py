"""The units that ship: valid whatever the folder is called, and written whole or not at all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from optbench.hardware.clock_control.state_folder import VARIABLE
from optbench.hardware.clock_control.systemd_units import (
    UNITS,
    UnitFileError,
    risk_of,
    systemd_unit,
    write_units,
)
from tests.hardware.gpu_machine import GpuMachine

# A name in which systemd, or a pattern of paths, would read something else.
ODD = 'a state % "folder" [1]'


def test_the_units_that_ship_are_valid(gpu_machine: GpuMachine, tmp_path: Path) -> None:
    folder = tmp_path / ODD
    words: list[str | Path] = ["gpu", "restore", "--write-units", tmp_path]
    outcome = gpu_machine.run(words, **{VARIABLE: str(folder)})
    paths = [tmp_path / f"optbench-gpu-restore.{kind}" for kind in UNITS]
    assert (outcome.code, all(str(path) in outcome.out for path in paths)) == (0, True)
    assert "systemctl enable --now optbench-gpu-restore.service" in outcome.out
    # Nothing else is left in the folder.
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    service, timer = (path.read_text() for path in paths)
    quoted = str(folder).replace("%", "%%").replace('"', '\\"')
    assert f'Environment="OPTBENCH_GPU_STATE={quoted}"' in service
    pattern = str(folder).replace("%", "%%").replace("[", "\\[")
    for kept in ("journal", "ranges"):
        assert f"ConditionPathExistsGlob=|{pattern}/*.{kept}\n" in service
    assert "@" not in service + timer
    assert "WantedBy=timers.target" in timer
    printed = gpu_machine.run(
        ["gpu", "restore", "--print-unit", "service"], **{VARIABLE: str(folder)}
    )
    assert printed.out == service
    if (systemd := shutil.which("systemd-analyze")) is None:
        return
    told = [systemd, "verify", "--man=no", *map(str, paths)]
    said = subprocess.run(told, capture_output=True, text=True, timeout=60)
    # Of the machine's other units it may complain; ours it must not name.
    ours = [line for line in said.stderr.splitlines() if "optbench-gpu-restore" in line]
    assert (said.returncode, ours) == (0, []), said.stderr
    folder.mkdir()
    condition = [systemd, "condition", f"ConditionPathExistsGlob={pattern}/*.journal"]
    assert subprocess.run(condition, capture_output=True, timeout=60).returncode != 0
    (folder / "GPU-1.journal").touch()
    assert subprocess.run(condition, capture_output=True, timeout=60).returncode == 0


def test_units_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    told = r"cannot be written: No such file or directory. Run: sudo \"\$\(command -v optbench\)\""
    with pytest.raises(UnitFileError, match=told):
        write_units(tmp_path / "missing")
    # A folder stands where the timer should be: it is not replaced, and nothing half is beside it.
    (tmp_path / "optbench-gpu-restore.timer").mkdir()
    with pytest.raises(UnitFileError, match="Is a directory"):
        write_units(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"optbench-gpu-restore.service", "optbench-gpu-restore.timer"}


def test_a_path_of_two_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/a\nExecStart=/b")
    with pytest.raises(UnitFileError, match="cannot be said in a unit"):
        systemd_unit("service")


def test_what_others_may_change_is_no_program_for_root(tmp_path: Path) -> None:
    assert risk_of(Path("/")) is None
    program = tmp_path / "python"
    program.touch()
    program.chmod(0o777)
    found = risk_of(program)
    assert found is not None
    assert str(program) in found
    assert "who can change what root runs there" in found
