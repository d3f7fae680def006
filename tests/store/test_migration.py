"""A store that the version before exact time has written, brought up to date by the first command
that reads it.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from optbench.model.files.schedule_json import schedule_from_dict
from optbench.model.verify import verify
from optbench.store.migration import OLD_CELLS, OLD_RECORDS
from optbench.store.run_store import Store
from optbench.store.snapshots import load_plan

# Three problems (a shop, a task graph, jobs that arrive, in seconds) by fcfs, cpsat and greedy,
# written at 7f346a7.
ARCHIVE = Path(__file__).parent / "data" / "store_version1.tar.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "store", filter="data")
    return tmp_path / "store"


def old_records(folder: Path) -> dict[str, dict]:  # type: ignore[type-arg]
    rows = map(json.loads, (folder / "results.jsonl").read_text().splitlines())
    return {
        f"{row['cell']['kind']} {row['cell']['label']} {row['cell']['target']}": row for row in rows
    }


def test_what_still_verifies_is_kept_under_a_new_key(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = old_records(folder)
    store = Store(folder)
    after = {f"{r.cell.kind} {r.cell.label} {r.cell.target}": r for r in store.records().values()}
    solved = {name for name, row in before.items() if row["objective"] is not None}
    assert len(solved) == 6 and set(after) == {
        name for name in before if not name.startswith("bound")
    }
    for name in solved:
        record = after[name]
        instance = store.instance(record.cell.instance_hash)
        schedule = schedule_from_dict(
            json.loads((store.cell(record.key) / "schedule.json").read_text()), instance
        )
        assert (
            verify(instance, schedule).objectives[0]
            == record.objective
            == pytest.approx(before[name]["objective"], rel=1e-12)
        )
        assert record.key != before[name]["key"] and not store.cell(before[name]["key"]).exists()
    said = capsys.readouterr().err
    assert "migrating it" in said and "3 bounds have no certificate" in said


def test_the_records_as_they_were_stay_and_nothing_is_done_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "results.jsonl").read_bytes()
    Store(folder).records()
    assert (folder / OLD_RECORDS).read_bytes() == text
    capsys.readouterr()
    again = Store(folder)
    assert len(again.records()) == 9 and capsys.readouterr().err == ""


def test_a_schedule_that_no_longer_verifies_is_dropped_and_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = old_records(folder)["solve cpsat jobshop:jobs=3,machines=2"]
    path = folder / "cells" / row["key"] / "schedule.json"
    schedule = json.loads(path.read_text())
    schedule["segments"]["start"][0] += 50
    path.write_text(json.dumps(schedule))
    store = Store(folder)
    kept = [
        record.cell
        for record in store.records().values()
        if record.cell.target.startswith("jobshop")
    ]
    assert {cell.label for cell in kept} == {"fcfs", "greedy"}
    assert "dropped: cpsat | jobshop-3x2-0 | 0: duration" in capsys.readouterr().err
    # Its files are out of the way, and not lost.
    assert (
        not path.exists()
        and json.loads((folder / OLD_CELLS / row["key"] / "schedule.json").read_text()) == schedule
    )


def test_plans_name_the_new_cells(folder: Path) -> None:
    store = Store(folder).make()
    plan = load_plan("small", store)
    keys = {cell.key for cell in plan.cells if cell.kind == "solve"}
    assert keys == set(store.records())


def test_a_new_store_is_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path / "new").make().records()
    assert capsys.readouterr().err == "" and (tmp_path / "new" / "format").read_text() == "2"
