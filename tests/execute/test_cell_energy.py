"""What cells draw is recorded beside their results: made-up counters, made-up GPUs, neither."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from optbench.execute.cell_energy import CellEnergies
from optbench.execute.cell_process import _place
from optbench.hardware.run_energy import RunEnergy
from tests.hardware.conftest import MachineMaker
from tests.hardware.conftest import gpu_machines as gpu_machines
from tests.hardware.conftest import stub_libraries as stub_libraries
from tests.hardware.gpu_machine import GpuMachine
from tests.hardware.made_up_powercap import MadeUpPowercap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
PACKAGE_W, BUSY_W = 100.0, 250.0
# A solver that works for a while, and the cells of a study with it.
BURNS = """
import os
import time
from pathlib import Path
import optbench as ob
from optbench.model.features import FEATURES

class Burns(ob.Solver):
    supports = frozenset(FEATURES)

    def solve(self, instance, run):
        Path(os.environ["TMPDIR"], f"pid.{os.getpid()}").write_text("here")
        until = time.process_time() + SECONDS
        while time.process_time() < until:
            sum(range(1000))
        return None
"""
STUDY = """
question = "What is drawn?"
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["burns"]
seeds = 2
time_limit = "30s"
"""
RUN = """
import json, sys
from optbench.run.runner import run_study
from optbench.study.study_file import load_study

done = run_study(load_study("study.toml"), jobs=int("JOBS"))
records = [each for each in done.records.values() if each.cell.kind == "solve"]
print(json.dumps([[each.total_s, each.energy, each.metrics] for each in records]))
"""


def workspace(folder: Path, seconds: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "optbench.toml").touch()
    (folder / "study.toml").write_text(STUDY)
    (folder / "solvers").mkdir()
    (folder / "solvers" / "burns.py").write_text(BURNS.replace("SECONDS", str(seconds)))
    return folder


def cells_of(
    machine: GpuMachine, jobs: int, seconds: float, **variables: str
) -> list[tuple[float, dict[str, Any]]]:
    """Run the study in a process that finds the made-up machine; seconds and energy by cell."""
    root = workspace(machine.folder, seconds)
    given = {"OPTBENCH_WORKSPACE": str(root), **variables}
    done = machine.python(RUN.replace("JOBS", str(jobs)), **given)
    assert done.code == 0, done.err
    found = json.loads(done.out.strip().splitlines()[-1])
    assert all("energy_j" not in metrics for _, _, metrics in found)
    return [(total_s, energy) for total_s, energy, _ in found]


def test_cells_at_the_same_time_share_a_package_by_processor_time(
    gpu_machines: MachineMaker, tmp_path: Path
) -> None:
    tree = MadeUpPowercap(tmp_path / "powercap")
    with tree.drawing({"package-0": PACKAGE_W}):
        root = {"OPTBENCH_POWERCAP_ROOT": str(tree.root), "CUDA_VISIBLE_DEVICES": ""}
        cells = cells_of(gpu_machines(), jobs=2, seconds=0.8, **root)
    assert len(cells) == 2
    for total_s, energy in cells:
        assert (energy["cpu_source"], energy["estimated"]) == ("powercap", False)
        assert energy["cpu_shared"] and 0 < energy["cpu_share"] <= 1
        drawn_j = PACKAGE_W * total_s * energy["cpu_share"]
        assert energy["cpu_j"] == pytest.approx(drawn_j, rel=0.1)
        assert energy["device_j"] is None and energy["energy_j"] == energy["cpu_j"]


def test_a_cell_is_charged_the_gpu_on_which_its_process_is(gpu_machines: MachineMaker) -> None:
    """Two cells at the same time, of which one has a process on a device, and the rule beside it
    none; another device is busy for others. Nothing is given by name.
    """
    machine = gpu_machines(num_devices=2)
    load = machine.load([1], seconds=120)
    adopting = threading.Thread(target=adopt_the_first, args=(machine,))
    adopting.start()
    cells = cells_of(machine, jobs=2, seconds=1.5, OPTBENCH_POWERCAP_ROOT="/nowhere")
    adopting.join()
    load.kill()
    load.communicate()
    ((total_s, energy),) = [each for each in cells if each[1]["device_j"] is not None]
    assert energy["by_device_j"].keys() == {machine.uuid(0)}
    assert 0 < energy["device_j"] <= 1.02 * BUSY_W * total_s
    assert (energy["device_source"], energy["device_shared"]) == ("counter", False)
    assert all(each["complete"] for _, each in cells)
    # Of the processors there is an estimate: 12 W, or what the environment says.
    assert energy["estimated"] and energy["notes"][0].startswith("estimated, processors: ")
    estimate_j = energy["cpu_s"] * energy["assumed_w"]
    assert energy["cpu_j"] == pytest.approx(estimate_j, abs=1e-4)
    assert energy["energy_j"] == pytest.approx(energy["cpu_j"] + energy["device_j"], abs=1e-5)


def adopt_the_first(machine: GpuMachine) -> None:
    """Put the first cell that says its number on device 0."""
    deadline_s = time.monotonic() + 60.0
    while time.monotonic() < deadline_s:
        with suppress(OSError):  # folders come and go
            for path in machine.folder.rglob("pid.*"):
                machine.adopt(int(path.suffix[1:]), [0])
                return
        time.sleep(0.005)


def test_a_gpu_given_by_name_counts_where_processes_are_hidden(
    gpu_machines: MachineMaker,
) -> None:
    machine = gpu_machines(num_devices=2, pids=1)
    load = machine.load([0], seconds=120)
    given = {"CUDA_VISIBLE_DEVICES": machine.uuid(0), "OPTBENCH_POWERCAP_ROOT": "/nowhere"}
    cells = cells_of(machine, jobs=1, seconds=0.1, **given)
    load.kill()
    load.communicate()
    for total_s, energy in cells:
        assert energy["by_device_j"].keys() == {machine.uuid(0)} and energy["complete"]
        assert energy["device_j"] == pytest.approx(BUSY_W * total_s, rel=0.02)
        assert (energy["device_source"], energy["device_shared"]) == ("counter", False)


@pytest.mark.parametrize("gpus", [None, ("1",)])
def test_cells_number_devices_as_nvml_does(
    monkeypatch: pytest.MonkeyPatch, gpus: tuple[str, ...] | None
) -> None:
    """CUDA itself begins with the fastest device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0" if gpus else "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    if gpus is None:  # what the user has chosen stays
        _place({"cores": None, "gpus": gpus})
        assert os.environ["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"
        monkeypatch.delenv("CUDA_DEVICE_ORDER")
    _place({"cores": None, "gpus": gpus})
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


MEASURED = RunEnergy(6.0, "powercap", 1.0, 1.0)
MESSAGE = {"energy": MEASURED.to_dict(), "span_s": [0.0, 1.0]}


def test_two_jobs_at_the_same_time_are_shared_even_if_one_slept() -> None:
    energies = CellEnergies()
    energies.begin("alone", ())
    assert not energies.end("alone", MESSAGE)["cpu_shared"]
    energies.begin("a", ())
    energies.begin("lost", ())
    energies.forget("lost")
    energies.begin("b", ())
    assert energies.end("a", MESSAGE)["cpu_shared"] and energies.end("b", MESSAGE)["cpu_shared"]
    energies.begin("stopped", ())
    energies.clear()
    energies.begin("after", ())
    assert not energies.end("after", MESSAGE)["cpu_shared"]
    energies.close()


def test_an_estimate_shares_nothing() -> None:
    energies = CellEnergies()
    energies.begin("a", ())
    energies.begin("b", ())
    message = {**MESSAGE, "energy": RunEnergy(6.0, "estimate", 0.5, assumed_w=12.0).to_dict()}
    assert not energies.end("a", message)["cpu_shared"]
