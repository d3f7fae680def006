"""The runner: what is missing is run, once, and what is finished stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from optbench.execute.base import JobOutcome
from optbench.run.cell_filter import select
from optbench.run.runner import RunProgress, StudyRun, run_study
from optbench.store.records import Reason
from optbench.store.run_store import Store, StoreError, _load_instance
from optbench.store.snapshots import load_plan
from optbench.study.declared import Study
from optbench.study.instance_sources import source_keys
from optbench.study.study_file import load_study
from tests.run.study_parts import STUDY, Inline, study_file


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".optbench")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return study_file(tmp_path)


def lines(store: Store) -> int:
    return len(store.file.read_text().splitlines())


def objectives(done: StudyRun) -> dict[str, object]:
    return {key: record.objective for key, record in done.records.items()}


def test_everything_runs_once_and_then_nothing(study: Study, store: Store) -> None:
    first = run_study(study, store=store, executor=Inline())
    # Two seeds: a bounding and two solvers each.
    assert (len(first.cells), first.done, first.ran, first.skipped, first.failed) == (6, 6, 6, 0, 0)
    executor = Inline()
    again = run_study(study, store=Store(store.folder), executor=executor)
    assert (again.ran, again.skipped, executor.seen, lines(store)) == (0, 6, [], 6)
    assert objectives(again) == objectives(first)
    assert load_plan(str(study.path), store).cells == first.plan.cells
    assert list((store.folder / "work").iterdir()) == []


def test_force_appends_and_the_last_record_counts(study: Study, store: Store) -> None:
    first = run_study(study, store=store, executor=Inline())
    second = run_study(study, store=store, executor=Inline(), force=True)
    assert (second.ran, second.skipped, lines(store)) == (6, 0, 12)
    assert objectives(second) == objectives(first)
    assert all(second.records[key].began_at > first.records[key].began_at for key in first.records)


def spoiled(outcome: JobOutcome) -> JobOutcome:
    """What random_rules would say if it crashed; everything else as it is."""
    result = (outcome.answer or {}).get("result", {})
    return (
        replace(outcome, answer=None, reason=Reason("signal", "11"))
        if result.get("solver") == "random_rules"
        else outcome
    )


def test_failed_cells_are_kept_until_they_are_retried(study: Study, store: Store) -> None:
    first = run_study(study, store=store, executor=Inline(spoiled))
    assert first.failed == 2 and {
        str(record.reason) for record in first.records.values() if record.failed
    } == {"signal: 11"}
    assert run_study(study, store=store, executor=Inline()).failed == 2
    executor = Inline()
    retried = run_study(study, store=store, executor=executor, retry=True)
    assert (retried.ran, retried.skipped, retried.failed, len(executor.seen)) == (2, 4, 0, 2)


def test_a_part_of_the_cells(study: Study, store: Store) -> None:
    part = run_study(
        study,
        store=store,
        executor=Inline(),
        only=lambda cells: select(cells, ["solver=fcfs", "seed=1"]),
    )
    assert [cell.title for cell in part.cells] == [
        "bounds | jobshop-3x3-1 | 0",
        "fcfs | jobshop-3x3-1 | 1",
    ]
    rest = run_study(study, store=store, executor=Inline())
    assert (rest.ran, rest.skipped) == (4, 2)


def test_a_stopped_study_goes_on_where_it_was(study: Study, store: Store) -> None:
    stop = threading.Event()

    def after_three(progress: RunProgress) -> None:
        if progress.kind == "cell" and progress.done == 3:
            stop.set()

    part = run_study(study, store=store, executor=Inline(), stop=stop, on_progress=after_three)
    assert part.interrupted and (part.done, part.ran) == (3, 3)
    rest = run_study(study, store=store, executor=Inline())
    assert (rest.ran, rest.skipped, lines(store)) == (3, 3, 6)


def test_an_instance_that_a_power_cut_emptied_is_made_again_and_a_damaged_one_named(
    study: Study, store: Store
) -> None:
    first = run_study(study, store=store, executor=Inline())
    file = store.instance_file(first.cells[0].instance_hash)
    whole = file.read_bytes()
    file.write_bytes(b"")
    assert run_study(study, store=Store(store.folder), executor=Inline(), force=True).failed == 0
    assert file.read_bytes() == whole
    _load_instance.cache_clear()
    file.write_bytes(b"nothing that was ever pickled")
    with pytest.raises(
        StoreError, match=f"{file.name}: the instance cannot be loaded.*remove this file"
    ):
        Store(store.folder).instance(file.stem)


@pytest.mark.parametrize("blocked", ["note", "latest"])
def test_what_cannot_be_written_beside_records_is_told_as_one_thing(
    study: Study, store: Store, blocked: str
) -> None:
    key = next(iter(source_keys(study.problems, study.seeds).values()))
    places = {
        "note": store.folder / "instances" / f"source-{key}.json",
        "latest": store.study_folder(study.name) / "latest",
    }
    places[blocked].mkdir(parents=True)
    with pytest.raises(
        StoreError,
        match=f"{places[blocked].parent.name}.*cannot be written.*run the same command again",
    ):
        run_study(study, store=store, executor=Inline())
    places[blocked].rmdir()
    assert run_study(study, store=store, executor=Inline()).done == 6


def test_stopped_before_its_instances_are_made_a_study_leaves_no_plan(
    study: Study, store: Store
) -> None:
    stop = threading.Event()
    stop.set()
    done = run_study(study, store=store, executor=Inline(), stop=stop)
    assert done.interrupted and (done.done, done.failed) == (0, 0)
    assert not (store.folder / "studies" / study.name / "latest").exists()


def test_what_another_runner_finishes_meanwhile_is_not_run_again(
    tmp_path: Path, study: Study, store: Store
) -> None:
    other = study_file(tmp_path, name="other")

    def meanwhile(progress: RunProgress) -> None:
        if progress.kind == "cell" and progress.done == 2:
            assert run_study(other, store=Store(store.folder), executor=Inline()).ran == 4

    executor = Inline()
    done = run_study(study, store=store, executor=executor, on_progress=meanwhile)
    assert (done.done, done.ran, done.skipped, lines(store)) == (6, 2, 4, 6)
    assert len(executor.seen) == 2 + 2  # and the two instances


def test_of_a_cell_that_two_runners_finish_the_first_record_stays(
    tmp_path: Path, study: Study, store: Store
) -> None:
    other = study_file(tmp_path, name="other")

    def slow(outcome: JobOutcome) -> JobOutcome:
        if (outcome.answer or {}).get("bounds") is not None and lines(store) == 0:
            run_study(other, store=Store(store.folder), executor=Inline())
        return outcome

    done = run_study(study, store=store, executor=Inline(slow))
    assert (done.done, done.ran, done.skipped, lines(store)) == (6, 0, 6, 6)


def test_instances_that_cannot_be_made_are_named_and_count_as_failed(
    tmp_path: Path, store: Store
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("2 2\n0 3 1 2\n0 4 1 2\n")
    text = STUDY.replace('"]\nsolvers', f'", "{bad}"]\nsolvers')
    study = study_file(tmp_path, text)
    bad.write_text("2 2\n0 3 1")
    done = run_study(study, store=store, executor=Inline())
    assert done.done == 6 and done.failed == len(done.unmade) > 0
    assert all(str(bad) in str(each.error) for each in done.unmade)


def test_a_study_changed_in_one_number_shares_the_rest(
    tmp_path: Path, study: Study, store: Store
) -> None:
    run_study(study, store=store, executor=Inline())
    more = load_study(study_file(tmp_path, STUDY.replace("seeds = 2", "seeds = 3")).path or "")
    done = run_study(more, store=store, executor=Inline())
    assert (done.ran, done.skipped) == (3, 6)


def test_progress_counts_instances_then_cells(study: Study, store: Store) -> None:
    told: list[RunProgress] = []
    run_study(study, store=store, executor=Inline(), on_progress=told.append)
    assert [(each.kind, each.done, each.total) for each in told] == [
        *(("instance", k, 2) for k in (1, 2)),
        ("plan", 0, 6),
        *(("cell", k, 6) for k in range(1, 7)),
    ]
    told.clear()
    run_study(study, store=store, executor=Inline(), on_progress=told.append)
    assert [
        (each.kind, each.done, each.total, len(each.known), len(each.waiting)) for each in told
    ] == [("plan", 6, 6, 6, 0)]


def test_the_records_on_disk_precede_what_is_told(study: Study, store: Store) -> None:
    def counted() -> Iterator[int]:
        def check(progress: RunProgress) -> None:
            if progress.record is not None:
                seen.append(progress.record.key in Store(store.folder).records())

        seen: list[bool] = []
        run_study(study, store=store, executor=Inline(), on_progress=check)
        yield from map(int, seen)

    assert list(counted()) == [1] * 6
