"""Cases of benchmarks/run_energy.py: what is measured beside what is true, on made-up machines."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optbench.execute.cell_energy import CellEnergies
from optbench.hardware.cpu_energy.processor_time import PackageTime
from optbench.hardware.cpu_run_meter import CpuRunMeter
from tests.execute.test_cell_energy import workspace
from tests.hardware.gpu_machine import GpuMachine, StubLibraries
from tests.hardware.made_up_powercap import MadeUpPowercap

BUSY_W = 250.0
NOTHING: Mapping[str, Any] = {}
# Cells are given the GPU by name, and the load is not below them: the driver hides who it is.
HIDDEN: Mapping[str, Any] = {"pids": 2}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Runs of a solver that works for so long, one or two at a time.
RUN = """
import json
from optbench.run.runner import run_study
from optbench.study.study_file import load_study

done = run_study(load_study("study.toml"), jobs=int("JOBS"))
records = [each for each in done.records.values() if each.cell.kind == "solve"]
print(json.dumps([[each.total_s, each.energy] for each in records]))
"""
WATCH = """
import json, time
from dataclasses import asdict
from optbench.hardware.device_watch import DeviceWatch

watch = DeviceWatch()
watch.begin("run", ("0",))
began_s = time.monotonic()
time.sleep(float("SECONDS"))
ended_s = time.monotonic()
print(json.dumps([began_s, ended_s, asdict(watch.end("run", began_s, ended_s))]))
watch.close()
"""


@dataclass(frozen=True)
class Compared:
    """A case: joules measured and true, and what the measurement says of itself."""

    case: str
    measured_j: float
    true_j: float
    said: str = ""

    @property
    def error(self) -> float:
        return self.measured_j / self.true_j - 1.0


def split_of_made_up_runs(seed: int, runs: int) -> list[Compared]:
    """Runs of random loads beside each other on one package whose power follows the load.

    The truth is the integral over milliseconds: power × a run's load / all loads.
    """
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        folder = Path(name)
        now_s, tree = [0.0], MadeUpPowercap(folder / "powercap", range_j=65_536.0)
        place = folder / "cpu" / "cpu0" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text("0")
        (folder / "stat").write_text("cpu0 0 0 0 0 0 0 0 0 0 0\n")
        busy = PackageTime([0], folder / "stat", folder / "cpu")
        meters = [CpuRunMeter(None, tree.root, busy, lambda: now_s[0]) for _ in range(runs)]
        for meter in meters:
            meter.begin()
        true_j, spent_s, all_s = np.zeros(runs), np.zeros(runs), 0.0
        for _ in range(40):  # phases of a random load each
            loads, lasts = rng.uniform(0.0, 2.0, runs + 1), rng.integers(1, 60)
            for _ in range(lasts):  # steps of 50 ms: the others' load comes last
                watts = 40.0 + 30.0 * loads.sum()
                now_s[0] += 0.05
                all_s += 0.05 * loads.sum()
                tree.add("package-0", 0.05 * watts)
                (folder / "stat").write_text(f"cpu0 {int(all_s * TICKS_PER_S)} 0 0 0 0 0 0 0 0 0\n")
                spent_s += 0.05 * loads[:runs]
                true_j += 0.05 * watts * loads[:runs] / loads.sum()
                for k, meter in enumerate(meters):
                    meter.tick(float(spent_s[k]))
        found = [meter.so_far(float(spent_s[k])) for k, meter in enumerate(meters)]
    return [
        Compared(f"run {k + 1} of {runs} and others", each.cpu_j, float(true_j[k]))
        for k, each in enumerate(found)
    ]


def cells_on(
    machine: GpuMachine, jobs: int, seconds: float, **variables: str
) -> list[tuple[float, dict[str, Any]]]:
    """A study of two cells that work; the seconds of each process and its energy."""
    root = workspace(machine.folder, seconds)
    given = {"OPTBENCH_WORKSPACE": str(root), **variables}
    done = machine.python(RUN.replace("JOBS", str(jobs)), **given)
    if done.code:
        raise SystemExit(done.err)
    return [(total_s, energy) for total_s, energy in json.loads(done.out.splitlines()[-1])]


def real_cells(
    libraries: StubLibraries, seconds: float, jobs: int, range_j: float
) -> list[Compared]:
    """Cells of a real study over a made-up tree of 100 W and 10 W of memory."""
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        tree = MadeUpPowercap(Path(name) / "powercap", range_j=range_j)
        machine = GpuMachine(libraries, Path(name))
        with tree.drawing({"package-0": 100.0, "package-0 dram": 10.0}):
            root = {"OPTBENCH_POWERCAP_ROOT": str(tree.root), "CUDA_VISIBLE_DEVICES": ""}
            return [
                Compared(
                    f"{jobs} at a time, {seconds:g} s, counter of {range_j:,.0f} J",
                    energy["cpu_j"],
                    110.0 * total_s * energy["cpu_share"],
                    f"share {energy['cpu_share']:.1%}, "
                    f"{'shared' if energy['cpu_shared'] else 'alone'}"
                    f"{''.join(f'; {note[:90]}' for note in energy['notes'])}",
                )
                for total_s, energy in cells_on(machine, jobs, seconds, **root)
            ]


def gpu_cells(
    libraries: StubLibraries, seconds: float, jobs: int, settings: Mapping[str, Any] = NOTHING
) -> list[Compared]:
    """Cells of a real study that hold a GPU of 250 W; two at a time share it."""
    what = "counter" if settings.get("has_counter", 1) else "integral"
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        machine = GpuMachine(libraries, Path(name), **HIDDEN, **settings)
        load = machine.load([0], seconds=600)
        given = {"CUDA_VISIBLE_DEVICES": machine.uuid(0), "OPTBENCH_POWERCAP_ROOT": "/nowhere"}
        cells = cells_on(machine, jobs, seconds, **given)
        load.kill()
        load.communicate()
    if jobs == 1:
        return [
            Compared(
                f"cell of {seconds:g} s alone, {what}",
                energy["device_j"],
                BUSY_W * total_s,
                f"± {energy['device_error_j']:.2f} J",
            )
            for total_s, energy in cells
        ]
    # They begin and end at about the same time: the GPU was held for as long as the longer one.
    whole_j = sum(energy["device_j"] for _, energy in cells)
    held_s = max(total_s for total_s, _ in cells)
    shared = all(energy["device_shared"] for _, energy in cells)
    title = f"two cells of {seconds:g} s on one GPU, {what}, their sum"
    return [Compared(title, whole_j, BUSY_W * held_s, "shared" if shared else "")]


def gpu_bursts(
    libraries: StubLibraries, seconds: float, case: str, settings: Mapping[str, Any] = NOTHING
) -> Compared:
    """A run during which the GPU is busy in bursts; the truth is the stub's own piecewise power."""
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        machine = GpuMachine(libraries, Path(name), **HIDDEN, **settings)
        words = WATCH.replace("SECONDS", str(seconds))
        environment = machine.environment()
        process = subprocess.Popen(
            [sys.executable, "-c", words], env=environment, stdout=subprocess.PIPE, text=True
        )
        while process.poll() is None:
            machine.load([0], seconds=0.31).communicate()
            time.sleep(0.17)
        began_s, ended_s, found = json.loads(process.communicate()[0])
        true_j = true_energy_j(machine, began_s, ended_s)
    (measured_j,) = found["by_device_j"].values()
    return Compared(case, measured_j, true_j, f"± {found['error_j']:.1f} J stated")


def true_energy_j(machine: GpuMachine, began_s: float, ended_s: float) -> float:
    """Integrate the power that the stub has noted, which is constant between its changes."""
    device = machine.device(0)
    count = device.num_segments
    rows = [device.segments[k % len(device.segments)] for k in range(count)]
    total_j = 0.0
    for k, row in enumerate(rows):
        first = max(began_s, row.from_ns * 1e-9)
        last = min(ended_s, rows[k + 1].from_ns * 1e-9 if k + 1 < count else ended_s)
        total_j += max(0.0, last - first) * row.watts
    return total_j


def overhead_ms(calls: Callable[[], object], count: int = 400) -> float:
    """Processor milliseconds of one call, the median of five rounds."""
    found = []
    for _ in range(5):
        began_s = time.process_time()
        for _ in range(count):
            calls()
        found.append(1e3 * (time.process_time() - began_s) / count)
    return statistics.median(found)


def overheads() -> list[tuple[str, float]]:
    """What measuring costs per cell: in the slot and in the runner."""
    out = []
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        tree = MadeUpPowercap(Path(name) / "powercap")
        for what, root in (("powercap tree", tree.root), ("estimate", Path(name) / "none")):
            meter, energies = CpuRunMeter(root=root), CellEnergies()

            def one(meter: CpuRunMeter = meter, energies: CellEnergies = energies) -> None:
                energies.begin("cell", ())
                meter.begin()
                meter.tick(0.01)
                energy = meter.so_far(0.01).to_dict()
                energies.end("cell", {"energy": energy, "span_s": [0.0, 1.0]})

            out.append((f"a cell, {what}", overhead_ms(one)))
            out.append((f"a look at a running cell, {what}", overhead_ms(ticking(meter))))
    return out


def ticking(meter: CpuRunMeter) -> Callable[[], object]:
    meter.begin()
    return lambda: meter.tick(0.01)


def rows_of(found: Sequence[Compared]) -> list[list[str]]:
    return [
        [
            each.case,
            f"{each.measured_j:,.2f}",
            f"{each.true_j:,.2f}",
            f"{100 * each.error:+.2f} %",
            each.said,
        ]
        for each in found
    ]
