"""The section on the energy of the runs, by figures of hand-made records."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

from optbench.hardware.run_energy import DeviceEnergy, RunEnergy
from optbench.report.energy_section import energy_outline, energy_section
from optbench.report.outline import outline
from optbench.report.study_page import render
from optbench.report.study_report import StudyReport, gather
from optbench.store.records import Record
from optbench.study.cells import Cell
from tests.evaluate.studies_by_hand import record, records_of, stored, study_of

MEASURED = RunEnergy(6.0, "powercap", 1.0, 0.5, cpu_shared=True)
ON_GPU = MEASURED.with_devices(DeviceEnergy({"GPU-a": 94.0}, "counter"))
ESTIMATED = RunEnergy(24.0, "estimate", 2.0, assumed_w=12.0)
TRAINING = {"energy_j": 6000.0, "estimated": True, "unknown": []}


def solved(schedule_j: float, run: RunEnergy, **more: Any) -> Callable[[Cell], Record]:
    def make(cell: Cell) -> Record:
        energy = {**run.to_dict(), **more}
        return replace(record(cell, 10.0), metrics={"energy_j": schedule_j}, energy=energy)

    return make


def report(folder: Path) -> StudyReport:
    plan = study_of(["hgnn", "heft", "cpsat"], ["a"], seeds=(0, 1))
    given: dict[tuple[str, str], Any] = {
        ("hgnn", "a-0"): solved(500.0, ON_GPU, training=TRAINING),
        ("hgnn", "a-1"): solved(500.0, ON_GPU, training=TRAINING),
        ("heft", "a-0"): solved(700.0, MEASURED),
        ("heft", "a-1"): solved(700.0, ESTIMATED),
        ("cpsat", "a-0"): (10.0, 5.0),
    }
    return gather(plan, stored(folder, records_of(plan, given)))


def texts(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_what_solvers_drew_and_when_training_is_paid_back(tmp_path: Path) -> None:
    found = report(tmp_path)
    shown = texts(energy_section(found))
    # hgnn: 2 cells of 6 J and 94 J; heft: 6 J and 24 J, of which one is estimated.
    assert "hgnn 2 100 6 94 200 J 100 % measured" in shown
    assert "heft 2 15 15 – 30 J 50.0 % estimated at 12 W (1 cell), else measured" in shown
    assert "cpsat 1" not in shown  # an older record: nothing is known of it
    # (700 + 15) - (500 + 100) = 115 J per instance; 6,000 / 115 = 52.2
    assert "hgnn a after 53 instances" in shown
    assert "6,000 estimated 115 106 to 124 500 + 100 700 + 15 heft, default parameters" in shown
    told = energy_outline(found)
    assert {each["solver"] for each in told["solvers"]} == {"hgnn", "heft"}
    assert told["payback"][0]["after_instances"] == 53
    assert outline(found)["run_energy"] == told
    assert 'id="energy"' in render(found, None)


def test_cells_of_which_something_is_missing_are_counted(tmp_path: Path) -> None:
    plan = study_of(["hgnn", "heft"], ["a"], seeds=(0, 1))
    doubtful = replace(MEASURED, cpu_complete=False)
    given: dict[tuple[str, str], Any] = {
        ("hgnn", "a-0"): solved(500.0, ON_GPU, training=TRAINING),
        ("hgnn", "a-1"): solved(500.0, ON_GPU, training=TRAINING),
        ("heft", "a-0"): solved(700.0, MEASURED),
        ("heft", "a-1"): solved(700.0, doubtful),
    }
    found = gather(plan, stored(tmp_path, records_of(plan, given)))
    shown = texts(energy_section(found))
    assert "heft 2 6 6 – 12 J 100 % measured; incomplete in 1 cell" in shown
    assert "unknown: the energy of one of the runs was not measured in full" in shown
    assert [each["incomplete"] for each in energy_outline(found)["solvers"]] == [0, 1]


def test_without_any_measured_cell_there_is_no_section(tmp_path: Path) -> None:
    plan = study_of(["heft"], ["a"])
    records = records_of(plan, {("heft", "a-0"): (10.0, 5.0)})
    assert energy_section(gather(plan, stored(tmp_path, records))) == ""
