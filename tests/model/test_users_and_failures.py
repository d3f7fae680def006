"""Users of tasks and failure rates of pools: metrics by hand, declarations, files, hashes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ModelError
from optbench.model.content_hash import LATER_COLUMNS
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream


def shared(users: list[Any], failures_per_day: float | None = None) -> Instance:
    """Tasks of 2 s one after another on one device."""
    m = ob.Model("shared", horizon_s=100)
    gpu = m.pool("gpu", failures_per_day=failures_per_day)
    for user in users:
        m.task(modes=[m.mode(gpu, time_s=2), m.mode(gpu, time_s=4)], user=user)
    m.minimize(makespan=1.0)
    return m.build()


def metrics(instance: Instance, starts: list[int]) -> dict[str, float]:
    return ob.verify(instance, Schedule.of(instance, [0] * len(starts), starts)).metrics


def test_fairness_by_hand() -> None:
    """Ends at 2, 4, 6: alice's tasks have slowdowns 1 and 2, bob's 3: (1.5 + 3)² / (2 (1.5² +
    3²)).
    """
    found = metrics(shared(["alice", "alice", "bob"]), [0, 2, 4])
    assert found["fairness"] == pytest.approx(20.25 / 22.5, rel=1e-12)
    assert metrics(shared(["a", "a", "a"]), [0, 2, 4])["fairness"] == 1.0
    assert "fairness" not in metrics(shared([None] * 3), [0, 2, 4])


SERVICE = ("slo_violation", "throughput_per_s", "utilisation")


def served(users: str | None) -> Instance:
    """Three tasks of 2 s; the second is due at 3 s (a wish), the third at 9 s. Two pools, the
    other one of three devices, which nobody uses.
    """
    m = ob.Model("served")
    gpu = m.pool("gpu")
    m.pool("other", count=3)
    for due in (None, 3, 9):
        m.task(modes=[m.mode(gpu, time_s=2)], user=users, deadline_s=due, hard=False)
    m.minimize(makespan=1.0)
    return m.build()


def test_service_by_hand() -> None:
    """Runs at [1, 3), [4, 6) and [6, 8): of two deadlines one is missed, three tasks end within
    8 s, and one device of four is busy for 6 s of them. Ended exactly in time is not late.
    """
    found = metrics(served("alice"), [1, 4, 6])
    assert [found[name] for name in SERVICE] == [1 / 2, 3 / 8, 6 / 32]
    assert metrics(served("alice"), [3, 1, 7])["slo_violation"] == 0.0
    assert not {*SERVICE} & {*metrics(served(None), [1, 4, 6])}


def test_service_of_an_open_instance_by_hand() -> None:
    """From 1 s on to the horizon of 9 s: task 0 has run since 0 s, half of it before the opening;
    task 1 is cut off after 2 of 4 s, late for 5 s; task 2 comes at the horizon and counts nowhere.
    One of two arrivals ends within 8 s, and (1 + 2) of 8 device-seconds are busy.
    """
    m = ob.Model("open", horizon_s=9, tick_s=1.0)
    gpu = m.pool("gpu")
    for time_s, due in ((2, None), (4, 5), (1, 1)):
        mode = m.mode(gpu, time_s=time_s)
        m.task(modes=[mode], user="a", deadline_s=due, hard=False)
    m.minimize(makespan=1.0)
    made = m.build()
    late = replace(made, tasks=replace(made.tasks, release=np.array([0, 0, 9])))
    task, start, end = np.array([[0, 1], [0, 7], [2, 9]])
    found = ob.verify(with_stream(late, opens=1), Schedule(task, task, start, end)).metrics
    assert [found[name] for name in SERVICE] == [1.0, 1 / 8, 3 / 8]


def test_work_that_arrives_after_the_end_is_nobodys() -> None:
    """bob's task is released at the horizon: alice is alone; her slowdown is 1."""
    made = shared(["alice", "bob"])
    late = replace(made, tasks=replace(made.tasks, release=np.array([0, 100])))
    made = with_stream(late, opens=0)
    row = np.zeros(1, dtype=np.int64)
    found = ob.verify(made, Schedule(row, row, row, row + 2)).metrics
    assert found["fairness"] == 1.0


def test_expected_failures_by_hand() -> None:
    """A device that fails twice a day works 6 s."""
    found = metrics(shared(["a"] * 3, failures_per_day=2.0), [0, 2, 4])
    assert found["expected_failures"] == pytest.approx(6 * 2 / 86_400, rel=1e-12)
    assert "expected_failures" not in metrics(shared(["a"] * 3), [0, 2, 4])


def test_users_are_numbered_as_they_are_named() -> None:
    m = ob.Model("many")
    gpu = m.pool("gpu")
    m.tasks([1.0, 2.0, 3.0], modes=[m.mode(gpu, time_s=1)], user=["bob", "alice", "bob"])
    m.tasks([1.0, 2.0], modes=[m.mode(gpu, time_s=1)], user=np.array([7, 7]))
    m.minimize(makespan=1.0)
    tasks = m.build().tasks
    assert tasks.user is not None and tasks.user.tolist() == [0, 1, 0, 2, 2]
    assert tasks.user_names == ("bob", "alice", "7")


def test_either_all_tasks_have_a_user_or_none() -> None:
    with pytest.raises(ModelError, match="task 1 has no user, but others do"):
        shared(["alice", None])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"user": np.array([0, 2])}, "user of task 't1' is 2; it must be one of the 2 users"),
        ({"user": np.array([-1, 0]), "user_names": None}, "is -1; it must be a whole number from"),
        ({"user": None}, "user_names has names, but no task has a user"),
        ({"user_names": ("x", "x")}, "two users are named 'x'"),
        ({"user": np.array([0])}, "tasks.user has 1 rows; it must have 2"),
    ],
)
def test_bad_users_are_refused(part: dict[str, Any], message: str) -> None:
    from optbench.model.validate import validate

    made = shared(["alice", "bob"])
    with pytest.raises(ModelError, match=message):
        validate(replace(made, tasks=replace(made.tasks, **part)))


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ModelError, match="failures_per_s of pool 'gpu' is -1"):
        shared(["a"], failures_per_day=-86_400.0)


def test_files_hold_them_and_hashes_count_them(tmp_path: Path) -> None:
    made, path = shared(["alice", "bob"], failures_per_day=1.0), tmp_path / "shared.json"
    ob.write_instance(made, path)
    back = ob.read_instance(path)
    assert isinstance(back, Instance) and back.hash == made.hash
    assert back.tasks.user_names == ("alice", "bob")
    plain = shared([None, None])
    assert len({made.hash, plain.hash, shared(["a", "b"]).hash, shared(["a", "a"]).hash}) == 4
    ob.write_instance(plain, path)
    text = json.loads(path.read_text())
    assert not LATER_COLUMNS & {*text["tasks"], *text["pools"]}


def test_published_formats_refuse_them(tmp_path: Path) -> None:
    ob.write_instance(shared(["a"], failures_per_day=1.0), tmp_path / "shared.json")
    with pytest.raises(ob.UnsupportedError, match="users, failure rates"):
        ob.convert(tmp_path / "shared.json", tmp_path / "shared.sm", to="psplib")
