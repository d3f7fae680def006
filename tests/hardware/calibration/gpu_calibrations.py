"""Quick calibrations of made-up GPUs: seconds instead of minutes, without noise unless told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.conftest import Outcome
from tests.hardware.gpu_machine import GpuMachine

# Four clocks of the made-up device's 210 to 1410 MHz, one round, a third of a second each.
QUICK = (
    *("--clocks", "360,720,1065,1410", "--rounds", "1", "--measure", "250ms"),
    *("--settle", "50ms", "--idle", "300ms", "--period", "10ms"),
)
PROFILE = "my-a100.json"


def workload(machine: GpuMachine, more: str = "") -> str:
    return f"{machine.libraries.load_program} {{device}} {{size}} --seconds {{seconds}}{more}"


def words_of(machine: GpuMachine, *more: str, load: str | None = None) -> list[str]:
    """The words of a quick calibration; options of ``more`` replace those before."""
    chosen = workload(machine) if load is None else load
    return ["gpu", "calibrate", "-o", PROFILE, "--workload", chosen, *QUICK, *more]


def state(machine: GpuMachine) -> dict[str, str]:
    """The journals of this machine's clocks."""
    return {"OPTBENCH_GPU_STATE": str(machine.folder / "state")}


def calibrated(machine: GpuMachine, *more: str, load: str | None = None) -> Outcome:
    return machine.run(words_of(machine, *more, load=load), **state(machine))


def started(machine: GpuMachine, *more: str, load: str | None = None) -> subprocess.Popen[str]:
    return machine.start(words_of(machine, *more, load=load), **state(machine))


def profile_of(machine: GpuMachine, name: str = PROFILE) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((machine.folder / name).read_text())
    return found


def nothing_written(machine: GpuMachine) -> bool:
    """Neither a profile, nor a page, nor a part of one."""
    left = {path.name for path in machine.folder.iterdir()}
    return left <= {"gpus.state", "state"}


def script(folder: Path, text: str) -> str:
    """A workload of a shell script that is given the devices as $1."""
    path = folder / "state" / "load.sh"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return f"sh {path} {{device}} {{size}} {{seconds}}"
