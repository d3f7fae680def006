"""What a store keeps, and freeing of it: by hand, so that every file is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from optbench.store.run_store import Store
from optbench.store.snapshots import load_plan
from optbench.store.upkeep import Inventory, Part, RunnerAtWorkError, free, no_runner
from optbench.study.planning import Plan
from optbench.tune.storage import folder_of
from optbench.tune.trials import cells_of_search
from tests.track.runs_by_hand import INSTANCE, PLAN, STUDY, bounding, cell, keep, record

OTHER = "other"
ALL: list[Part] = ["records", "plans", "trajectories", "schedules"]
FILES = dict.fromkeys(("schedule.json", "trajectory.json"), b"{}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two studies: ``hand`` has three cells, ``other`` shares fcfs with it; one cell of neither."""
    made = Store(tmp_path / ".optbench").make()
    made.add_instance(INSTANCE)
    for label in ("fcfs", "random_rules:k=8"):
        made.add(record(label, 10.0), FILES)
    made.add(bounding(8.0), {})
    stray = record("heft", 11.0)
    made.add(replace(stray, cell=cell("heft")), FILES)
    keep(made)
    study = replace(STUDY, name=OTHER, solvers=STUDY.solvers[:1])
    place = made.study_folder(OTHER)
    plan = Plan(study, PLAN.made, PLAN.cells[1:2])
    (place / "aaaa.json").write_text(json.dumps(plan.to_dict()))
    (place / "latest").write_text("aaaa.json")
    charts = tmp_path / "mlflow" / "artifacts" / "optbench" / "hand" / "run1"
    charts.mkdir(parents=True)
    (charts / "gantt.html").write_text("x" * 10_000)
    return made


def inventory(store: Store) -> Inventory:
    charts = store.folder.parent / "mlflow" / "artifacts" / "optbench"
    return Inventory(store, {"charts": charts}, {"compiled": store.folder / "compiled"})


def key(label: str) -> str:
    return cell(label).key


def test_sizes_by_study_and_what_belongs_to_none(store: Store) -> None:
    found = inventory(store)
    hand, other = found.studies["hand"], found.studies[OTHER]
    assert hand.keys == {key("bounds"), key("fcfs"), key("random_rules:k=8")}
    assert other.keys == {key("fcfs")} and found.rest.keys == {key("heft")}
    lines = [len(line) for line in store.file.read_bytes().splitlines(keepends=True)]
    assert sum(found.line_b.values()) == sum(lines)
    assert found.size_b(hand, "records") == sum(lines[:3])
    assert found.size_b(hand, "charts") >= 10_000 and found.size_b(other, "charts") == 0
    # Shared files count once in the sum.
    shared = found.size_b(other, "schedules") + found.size_b(other, "instances")
    parts: list[Part] = [*ALL, "instances", "charts"]
    apart = sum(found.size_b(kept, part) for kept in (hand, other, found.rest) for part in parts)
    twice = shared + found.size_b(other, "trajectories") + found.size_b(other, "records")
    assert found.total_b == apart - twice


def test_schedules_go_and_records_stay(store: Store) -> None:
    before = store.file.read_bytes()
    with no_runner(store):
        free(store, *inventory(store).of(["schedules"], ["hand"]))
    # That of fcfs is shared with the other study.
    left = {path.parent.name for path in store.folder.glob("cells/*/schedule.json")}
    assert left == {key("fcfs"), key("heft")}
    assert store.file.read_bytes() == before
    assert (store.cell(key("random_rules:k=8")) / "trajectory.json").is_file()
    with no_runner(store):
        free(store, *inventory(store).of(["schedules"], []))
    assert list(store.folder.glob("cells/*/schedule.json")) == []
    assert len(store.records()) == 4


def test_caches_can_be_made_again(store: Store) -> None:
    code = store.folder / "compiled" / "solver-x-1" / "deep"
    code.mkdir(parents=True)
    (code / "kernel.nbc").write_text("code")
    orphan = store.cell("no-record")
    orphan.mkdir()
    (orphan / "schedule.json").write_text("{}")
    with no_runner(store):
        free(store, *inventory(store).of(["instances", "compiled", "leftovers"], []))
    assert not store.instance_file(INSTANCE.hash).exists()
    assert not (store.folder / "compiled" / "solver-x-1").exists()
    assert not (orphan / "schedule.json").exists()
    assert len(store.records()) == 4
    assert load_plan(OTHER, store).study.name == OTHER
    store.add_instance(INSTANCE)
    assert store.instance(INSTANCE.hash).hash == INSTANCE.hash


def test_records_of_a_study_go_without_those_of_another(store: Store) -> None:
    reader = store.records()
    assert len(reader) == 4
    with no_runner(store):
        free(store, *inventory(store).of(ALL, ["hand"]))
    assert set(Store(store.folder).records()) == {key("fcfs"), key("heft")}
    assert set(store.records()) == {key("fcfs"), key("heft")}
    assert not store.cell(key("bounds")).exists() and store.cell(key("fcfs")).is_dir()
    assert "hand" not in inventory(store).studies or not inventory(store).studies["hand"].keys
    store.add(bounding(8.0), {})  # A store that was open goes on.
    assert set(Store(store.folder).records()) == {key("fcfs"), key("heft"), key("bounds")}


def test_a_replaced_file_that_has_grown_again_is_read_anew(store: Store) -> None:
    reader = Store(store.folder)
    assert len(reader.records()) == 4
    with no_runner(store):
        free(store, *inventory(store).of(ALL, ["hand"]))
    long = record("random_rules:k=8", 10.0, metrics={f"m{k}": 1.0 for k in range(1000)})
    store.add(long, {})
    store.add(bounding(8.0), {})
    found = reader.records()
    assert set(found) == {key(each) for each in ("fcfs", "heft", "random_rules:k=8", "bounds")}
    assert len(found[key("random_rules:k=8")].metrics) == 1000


def test_a_crash_in_the_middle_loses_nothing_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink, seen = Path.unlink, []

    def crash(path: Path, missing_ok: bool = False) -> None:
        if path.name in FILES:
            seen.append(path)
            if len(seen) == 2:
                raise KeyboardInterrupt
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", crash)
    with pytest.raises(KeyboardInterrupt), no_runner(store):
        free(store, *inventory(store).of(ALL, ["hand"]))
    monkeypatch.undo()
    again = Store(store.folder).make()
    assert set(again.records()) == {key("fcfs"), key("heft")}
    assert (again.cell(key("fcfs")) / "schedule.json").is_file()
    with no_runner(again):  # What was left is freed by the next call.
        free(again, *inventory(again).of(["leftovers"], []))
    assert inventory(again).size_b(inventory(again).rest, "leftovers") == 0
    assert set(again.records()) == {key("fcfs"), key("heft")}


def test_nothing_is_freed_while_a_runner_is_at_work(store: Store) -> None:
    with (
        store.work_folder(),
        pytest.raises(RunnerAtWorkError, match="is running"),
        no_runner(store),
    ):
        raise AssertionError("the store is held by the runner")
    with no_runner(store):
        pass


def test_cells_of_a_search_count_to_its_study(store: Store) -> None:
    folder = folder_of(store.folder, "hand")
    folder.mkdir(parents=True)
    lines = [
        {"op_code": 4, "study_id": 0},
        {"op_code": 8, "trial_id": 0, "user_attr": {"optbench.cells": [key("heft"), "gone"]}},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "trials.journal").write_text(text + '{"user_attr": {"optbench.cells": ["cut')
    found = Inventory(
        store,
        {"searches": folder.parent},
        searched=lambda name: cells_of_search(folder_of(store.folder, name)),
    )
    assert key("heft") in found.studies["hand"].keys and found.rest.keys == set()
    assert found.size_b(found.studies["hand"], "searches") > 0
    files, _ = found.of(["schedules"], ["hand"])
    assert store.cell(key("heft")) / "schedule.json" in files
