"""The store: what was finished is there, whole and once, whatever happened to its writers and its
disk.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from optbench.execute.base import JobOutcome
from optbench.run.judge import judge
from optbench.store.locks import StudyBusyError, remove_dead_folders
from optbench.store.record_index import DamagedRecordWarning
from optbench.store.records import Record
from optbench.store.run_store import Store, StoreError
from tests.run.study_parts import answer_of, cell_of, instance_of

INSTANCE = instance_of()
FILES = {"schedule.json": b"{}", "output.txt": b"one"}


def record_of(seed: int = 0, at: str = "2026-11-18T12:00:00.000+00:00", **fields: object) -> Record:
    cell = cell_of(INSTANCE, seed=seed)
    record = judge(cell, JobOutcome(cell.key, answer_of(INSTANCE), total_s=1 / 3), INSTANCE, at)
    return replace(record, **fields)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".optbench").make()


Say = Callable[[object], object]


class Child:
    """A fork of this process at work on something, which it may tell of line by line."""

    def __init__(self, work: Callable[[Say], object]) -> None:
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                work(lambda words: os.write(write, f"{words}\n".encode()))
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        self.said = os.fdopen(read)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """The exit code, negative for a signal."""
        self.rest = self.said.read()
        self.said.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_record_comes_back_as_it_was(store: Store) -> None:
    record = record_of(
        info={"third": 1 / 3, "tiny": 5e-324, "none": None}, metrics={"energy_j": 0.1 + 0.2}
    )
    assert store.add(record, FILES) is record
    again = Store(store.folder).records()[record.key]
    assert again.to_dict() == record.to_dict() and again.cell.key == record.key
    assert (again.metrics["energy_j"], again.info["third"], again.total_s) == (
        0.1 + 0.2,
        1 / 3,
        record.total_s,
    )
    assert (store.cell(record.key) / "output.txt").read_bytes() == b"one"


def test_what_is_not_finite_is_null(store: Store) -> None:
    store.add(record_of(info={"gap": float("nan"), "best": float("inf")}), {})
    assert dict(Store(store.folder).records()[record_of().key].info) == {"gap": None, "best": None}


def test_a_cell_is_recorded_once(store: Store) -> None:
    first, second = record_of(), record_of(at="2026-11-18T13:00:00.000+00:00")
    store.add(first, FILES)
    assert Store(store.folder).add(second, {"output.txt": b"two"}).began_at == first.began_at
    assert len(store.file.read_text().splitlines()) == 1
    assert (store.cell(first.key) / "output.txt").read_bytes() == b"one"


def test_a_cell_that_is_run_again_replaces_what_was_seen_and_nothing_newer(store: Store) -> None:
    first, second, third = (record_of(at=f"2026-11-18T1{k}:00:00.000+00:00") for k in range(3))
    store.add(first, FILES)
    assert store.add(second, {"output.txt": b"two"}, replaces=first) is second
    assert store.add(third, {"output.txt": b"three"}, replaces=first).began_at == second.began_at
    assert Store(store.folder).records()[first.key].began_at == second.began_at
    assert {path.name: path.read_bytes() for path in store.cell(first.key).iterdir()} == {
        "output.txt": b"two"
    }
    assert list((store.folder / "aside").iterdir()) == []


@pytest.mark.parametrize("cut", [1, 40, 700])
def test_a_torn_last_line_is_no_record_and_the_next_writer_removes_it(
    store: Store, cut: int
) -> None:
    store.add(record_of(0), FILES)
    whole = store.file.read_bytes()
    store.add(record_of(1), FILES)
    store.file.write_bytes(store.file.read_bytes()[: len(whole) + cut])
    assert list(Store(store.folder).records()) == [record_of(0).key]
    later = Store(store.folder).make()
    later.add(record_of(1), FILES)
    assert (
        sorted(later.records())
        == sorted(Store(store.folder).records())
        == sorted(record_of(seed).key for seed in (0, 1))
    )
    assert all(
        json.loads(line)["format"] == "optbench-cell"
        for line in store.file.read_text().splitlines()
    )


def test_a_damaged_line_costs_its_cell_and_is_named(store: Store) -> None:
    for seed in range(3):
        store.add(record_of(seed), FILES)
    lines = store.file.read_bytes().splitlines(keepends=True)
    store.file.write_bytes(lines[0] + lines[1][:300] + b"\0" * 20 + lines[1][320:] + lines[2])
    records = Store(store.folder).records()
    with pytest.warns(DamagedRecordWarning, match=r"results\.jsonl, line 2: not a record, skipped"):
        assert record_of(1).key not in records
    assert sorted(records) == sorted(record_of(seed).key for seed in (0, 2))
    store.file.write_bytes(lines[0] + b"what is this\n" + lines[2])
    with pytest.warns(DamagedRecordWarning, match=r"line 2: .*what is this"):
        assert len(Store(store.folder).records()) == 2
    with pytest.warns(DamagedRecordWarning, match="line 2"):
        assert Store(store.folder).make().add(record_of(1), FILES).key == record_of(1).key


def test_an_earlier_record_counts_where_the_last_one_is_damaged(store: Store) -> None:
    first, second = record_of(), record_of(at="2026-11-18T13:00:00.000+00:00")
    store.add(first, FILES)
    store.add(second, FILES, replaces=first)
    text = store.file.read_bytes()
    store.file.write_bytes(text.replace(b"T13:00", b"T13\0:00"))
    with pytest.warns(DamagedRecordWarning, match="line 2"):
        assert Store(store.folder).records()[first.key].began_at == first.began_at


def test_a_record_of_a_newer_version_is_passed_and_kept(store: Store) -> None:
    store.add(record_of(), FILES)
    newer = store.file.read_text().replace('"version": 1, "key"', '"version": 99, "key"')
    store.file.write_text(newer)
    with pytest.warns(DamagedRecordWarning, match="version 99"):
        assert record_of().key not in Store(store.folder).records()
    assert store.file.read_text() == newer


def test_lines_that_others_append_are_noticed(store: Store) -> None:
    records = store.records()
    assert Child(lambda say: say(Store(store.folder).add(record_of(5), FILES))).wait() == 0
    assert record_of(5).key not in records
    assert store.records()[record_of(5).key].cell.seed == 5
    store.file.write_bytes(b"")  # somebody has moved the file away
    assert list(store.records()) == []


def test_writers_do_not_mix_their_lines(store: Store) -> None:
    def add(first: int) -> None:
        for seed in range(first, 40):
            Store(store.folder).add(record_of(seed), FILES)

    children = [Child(lambda say, k=k: add(k)) for k in (0, 10, 20)]  # type: ignore[misc]
    assert [child.wait() for child in children] == [0, 0, 0]
    lines = [json.loads(line) for line in store.file.read_text().splitlines()]
    assert len(lines) == 40 and len({line["key"] for line in lines}) == 40


def test_a_writer_killed_at_any_moment_loses_nothing_that_it_announced(store: Store) -> None:
    def add(say: Say) -> None:
        for seed in range(10_000):
            say(store.add(record_of(seed), FILES).key)

    for delay_s in (0.0, 0.01, 0.03, 0.05):
        child = Child(add)
        first = child.said.readline().strip()
        time.sleep(delay_s)
        child.kill()
        assert child.wait() == -signal.SIGKILL
        announced = {first, *child.rest.split("\n")[:-1]}
        records = Store(store.folder).make().records()
        assert announced <= set(records)
        assert all((store.cell(key) / "schedule.json").exists() for key in records)


def test_files_of_a_record_that_was_not_replaced_come_back(store: Store) -> None:
    first = record_of()
    store.add(first, FILES)
    second = record_of(at="2026-11-18T13:00:00.000+00:00")

    def killed(say: Say) -> None:
        with mock.patch.object(Store, "_append", lambda *_: os.kill(os.getpid(), signal.SIGKILL)):
            say(store.add(second, {"output.txt": b"two"}, replaces=first))

    assert Child(killed).wait() == -signal.SIGKILL
    assert (store.cell(first.key) / "output.txt").read_bytes() == b"two"
    Store(store.folder).make()
    assert (store.cell(first.key) / "output.txt").read_bytes() == b"one"
    assert list((store.folder / "aside").iterdir()) in ([], [store.folder / "aside" / "new"])


def test_a_full_disk_is_said_and_costs_nothing(store: Store) -> None:
    store.add(record_of(0), FILES)
    before = store.file.read_bytes()

    def add(say: Say) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 500, resource.RLIM_INFINITY))
        try:
            store.add(record_of(1), FILES)
        except StoreError as error:
            say(error)

    child = Child(add)
    assert child.wait() == 0
    assert (
        "results.jsonl: cannot be written: " in child.rest
        and "run the same command again" in child.rest
    )
    assert store.file.read_bytes() == before
    assert store.add(record_of(1), FILES).key in Store(store.folder).records()


def test_a_store_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / ".optbench").write_text("a file")
    with pytest.raises(StoreError, match=r"\.optbench.*cannot be written"):
        Store(tmp_path / ".optbench").make()


def test_an_instance_of_another_version_is_written_anew(store: Store) -> None:
    path = store.add_instance(INSTANCE)
    path.write_bytes(b"damaged")
    store.add_instance(INSTANCE)
    assert store.instance(INSTANCE.hash).hash == INSTANCE.hash


def test_a_study_has_one_runner_and_the_second_is_told_whom(store: Store) -> None:
    def hold(say: Say) -> None:
        with store.study_lock("night"):
            say("held")
            time.sleep(60)

    child = Child(hold)
    assert child.said.readline() == "held\n"
    with (
        pytest.raises(StudyBusyError, match=f"'night' is being run by process {child.pid} since"),
        store.study_lock("night"),
    ):
        pass
    with store.study_lock("day"):
        pass
    child.kill()
    child.wait()
    with store.study_lock("night"):
        pass


def test_work_folders_of_the_dead_go_and_those_of_the_living_stay(store: Store) -> None:
    def hold(say: Say) -> None:
        with store.work_folder() as folder:
            say(folder)
            time.sleep(60)

    dead, living = Child(hold), Child(hold)
    gone, kept = Path(dead.said.readline().strip()), Path(living.said.readline().strip())
    (gone / "cell").mkdir()
    (store.folder / "work" / "of an older version").mkdir()
    (store.folder / "work" / "a file").touch()
    dead.kill()
    dead.wait()
    with store.work_folder() as own:
        assert sorted((store.folder / "work").iterdir()) == sorted([kept, own])
        remove_dead_folders(store.folder / "work")
        assert own.exists() and kept.exists()
    assert list((store.folder / "work").iterdir()) == [kept]
    living.kill()
    living.wait()
    assert kept.exists()
