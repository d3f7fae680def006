"""What MLflow shows of a study: made by hand, so that every figure is known."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from optbench.hardware.run_energy import DeviceEnergy, RunEnergy
from optbench.store.records import Reason
from optbench.store.run_store import Store
from optbench.track.runs import TrackedRun
from optbench.track.study_runs import StudyRuns
from optbench.track.study_sync import push, with_records
from optbench.track.tracking import Tracking
from tests.track.runs_by_hand import (
    INSTANCE,
    LATER,
    PLAN,
    STUDY,
    TARGET,
    bounding,
    cell,
    keep,
    record,
)


def described(store: Store) -> dict[str, TrackedRun]:
    parent, children = StudyRuns(PLAN, store).runs(store.records())
    return {"parent": parent, **{run.tags["optbench.solver"]: run for run in children}}


def test_metrics_are_those_of_the_study_not_of_the_cell_alone(store: Store) -> None:
    runs = described(store)
    fcfs, random = runs["fcfs"].metrics, runs["random_rules:k=8"].metrics
    # The shared bound 8 makes the study gaps: (10 - 8) / 10 and (16 - 8) / 16; best known is 10.
    assert (fcfs["objective"], fcfs["study_bound"], fcfs["study_gap"], fcfs["rpd"]) == (
        10.0,
        8.0,
        0.2,
        0.0,
    )
    assert "gap" not in fcfs and "bound" not in fcfs  # a rule reports no bound
    assert random["study_gap"] == 0.5
    assert random["rpd"] == pytest.approx(0.6)
    # Half a second without a schedule, half a second at |20 - 10| / 20, then at the best.
    assert fcfs["primal_integral"] == pytest.approx(0.5 + 0.25)
    # No trajectory was kept: as if there were none until the end.
    assert random["primal_integral"] == 2.0
    own = {
        "energy_j": 7.0,
        "makespan_s": 3.0,
        "wall_s": 2.0,
        "time_to_first_s": 0.5,
        "peak_memory_mb": 64.0,
    }
    assert own.items() <= fcfs.items()
    assert runs["bounds"].metrics["bound"] == 8.0 and "gap" not in runs["bounds"].metrics


def test_what_a_cell_drew_stands_beside_the_energy_of_its_schedule(store: Store) -> None:
    devices = DeviceEnergy({"GPU-a": 94.0}, "counter", shared=True)
    drawn = RunEnergy(6.0, "powercap", 1.0, 0.5).with_devices(devices)
    made = replace(record("fcfs", 10.0), energy=drawn.to_dict())
    _, children = StudyRuns(PLAN, store).runs({made.key: made})
    (run,) = children
    names = ("energy_j", "run_energy_j", "run_cpu_j", "run_device_j")
    assert [run.metrics[name] for name in names] == [7.0, 100.0, 6.0, 94.0]
    assert run.tags["optbench.run_energy"] == "measured"
    assert run.tags["optbench.run_energy_shared"] == "yes"
    assert run.tags["optbench.run_energy_complete"] == "yes"
    # Records of older versions have none.
    older = described(store)["fcfs"]
    assert not {"run_energy_j"} & older.metrics.keys() and "optbench.run_energy" not in older.tags


def test_names_tags_parameters_and_times(store: Store) -> None:
    run = described(store)["random_rules:k=8"]
    assert run.name == f"random_rules:k=8 | {INSTANCE.name} | 3"
    expected = {
        "problem": TARGET,
        "instance_hash": INSTANCE.hash,
        "solver": "random_rules:k=8",
        "seed": "3",
        "threads": "1",
        "config_hash": STUDY.config_hash,
        "key": cell("random_rules:k=8").key,
        "code_version": "0.1.0",
        "status": "feasible",
    }
    assert {f"optbench.{key}": value for key, value in expected.items()}.items() <= run.tags.items()
    assert run.cell == f"{STUDY.config_hash[:12]}-{cell('random_rules:k=8').key}"
    assert run.params == {"k": "8", "work_limit": "10", "threads": "1"}
    assert (run.began_ms % 86_400_000, run.ended_ms - run.began_ms) == (36_000_250, 2500)
    assert (
        "optbench solve" in run.tags["mlflow.note.content"]
        and "-p k=8" in run.tags["mlflow.note.content"]
    )


def test_the_parent_sums_up(store: Store) -> None:
    parent = described(store)["parent"]
    assert (parent.status, parent.cell) == ("FINISHED", f"{STUDY.config_hash[:12]}-study")
    wanted = {"cells": 3.0, "cells_done": 3.0, "cells_failed": 0.0}
    wanted |= {"mean_study_gap/fcfs": 0.2, "mean_study_gap/random_rules:k_8": 0.5}
    assert wanted.items() <= parent.all_metrics().items()


def test_a_study_that_is_not_complete_is_not_finished(store: Store) -> None:
    wider = replace(PLAN, cells=(*PLAN.cells, cell("heft")))
    runs = StudyRuns(wider, store)
    assert runs.runs(store.records())[0].status == "KILLED"
    assert runs.runs(store.records(), running=True)[0].status == "RUNNING"


def test_a_failed_cell_says_why_and_has_no_objective(store: Store) -> None:
    known = store.records()[cell("fcfs").key]
    wrong = record(
        "fcfs", None, reason=Reason("crashed", "ZeroDivisionError"), status="error", began_at=LATER
    )
    store.add(wrong, {"output.txt": b"Traceback"}, replaces=known)
    run = described(store)["fcfs"]
    assert (run.status, run.tags["optbench.reason"], run.tags["optbench.message"]) == (
        "FAILED",
        "crashed",
        "ZeroDivisionError",
    )
    assert run.metrics.keys().isdisjoint({"objective", "gap", "rpd", "primal_integral"})


def test_a_bound_that_is_refuted_later_makes_a_failed_run(store: Store) -> None:
    """fcfs says 12 is a lower bound, random_rules had reached 16, fcfs itself 10: no schedule is
    below its own bound.
    """
    known = store.records()[cell("random_rules:k=8").key]
    false = ({"value": 12.0, "source": "hand", "proof": "solver", "level": 0},)
    store.add(
        record("random_rules:k=8", 16.0, bound=12.0, bounds=false, gap=0.25, began_at=LATER),
        {},
        known,
    )
    run = described(store)["random_rules:k=8"]
    assert (run.status, run.tags["optbench.reason"]) == ("FAILED", "false_bound")
    assert "objective" not in run.metrics


def test_objectives_in_order_have_a_metric_each(store: Store) -> None:
    two = replace(record("fcfs", None), objective=(3.0, 9.0), bound=(3.0, 6.0), gap=(0.0, 1 / 3))
    _, children = StudyRuns(PLAN, store).runs({two.key: two})
    (run,) = children
    wanted = {
        "objective_0": 3.0,
        "objective_1": 9.0,
        "bound_0": 3.0,
        "bound_1": 6.0,
        "gap_0": 0.0,
        "gap_1": 1 / 3,
        "gap": 1 / 3,
    }
    assert wanted.items() <= run.metrics.items() and "objective" not in run.metrics


def test_files_of_a_cell_and_of_the_study(store: Store, tmp_path: Path) -> None:
    keep(store)
    runs = described(store)
    for name in ("parent", "fcfs", "random_rules:k=8"):
        folder = tmp_path / "files" / name
        folder.mkdir(parents=True)
        write = runs[name].artifacts
        assert write is not None
        write(folder)
    files = {path.name for path in (tmp_path / "files" / "fcfs").iterdir()}
    assert files == {"record.json", "schedule.json", "trajectory.json", "gantt.html", "power.csv"}
    assert {path.name for path in (tmp_path / "files" / "random_rules:k=8").iterdir()} == {
        "record.json"
    }
    assert {"plan.json", "report.html", "solvers.csv"} <= {
        path.name for path in (tmp_path / "files" / "parent").iterdir()
    }
    with (tmp_path / "files" / "fcfs" / "power.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["t_s"]) == 0.0 and float(rows[0]["power_w"]) > 0.0
    assert json.loads((tmp_path / "files" / "fcfs" / "record.json").read_text())["bound"] is None


def test_a_study_is_sent_whole_and_a_better_bound_again(store: Store, workspace: Path) -> None:
    snapshot = keep(store)
    assert list(with_records(STUDY.name, store)) == [snapshot]
    tracking = Tracking(workspace=workspace)
    assert push(snapshot, store, tracking).created == 4
    assert push(snapshot, store, Tracking(workspace=workspace)).unchanged == 4
    store.add(replace(bounding(9.0), began_at=LATER), {}, store.records()[cell("bounds").key])
    # The bounding, both solvers and the sums over the study.
    assert push(snapshot, store, tracking).updated == 4
    found = tracking.client.search_runs(["1"], "tags.`optbench.solver` = 'fcfs'")
    assert [run.data.metrics["study_gap"] for run in found] == [0.1]
    assert all("gap" not in run.data.metrics for run in found)  # a rule has no bound of its own


def test_a_database_that_is_gone_is_noticed(store: Store, workspace: Path) -> None:
    snapshot = keep(store)
    tracking = Tracking(workspace=workspace)
    push(snapshot, store, tracking)
    plan, records = snapshot.plan(store), store.records()
    fingerprint = snapshot.fingerprint(plan, records, tracking.place.uri)
    assert snapshot.sent(fingerprint, tracking.place)
    shutil.rmtree(workspace / "mlflow")
    assert not snapshot.sent(fingerprint, tracking.place)
