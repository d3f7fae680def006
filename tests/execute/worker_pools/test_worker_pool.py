"""Pools of workers: results in order, shards that keep their state, workers that are lost. The same
tests for processes of this machine and for actors on two Ray nodes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from optbench.errors import OptbenchError, ParameterError
from optbench.execute.ray_cluster.connection import connected
from optbench.execute.ray_cluster.like_nodes import LikeNodes
from optbench.execute.worker_pools.process_staff import ProcessStaff
from optbench.execute.worker_pools.ray_staff import NodeWorker, RayStaff
from optbench.execute.worker_pools.worker_pool import Staff, StaffedPool
from optbench.hardware.visible_devices import devices_given
from optbench.learn.work_pool import OneProcess, WorkPool, parts
from tests.execute.worker_pools.pool_calls import (
    end_always,
    end_once,
    number_of,
    purse,
    put_in,
    refuse_three,
    times,
)
from tests.ray_nodes import RayNodes


@pytest.fixture(scope="module", params=["processes", "ray"])
def staff(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Staff]:
    if request.param == "processes":
        yield ProcessStaff()
        return
    nodes: RayNodes = request.getfixturevalue("ray_session")
    if not nodes.workers():
        nodes.add_node()
    root = tmp_path_factory.mktemp("workspace")
    (root / "optbench.toml").touch()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**nodes.environment(), "OPTBENCH_WORKSPACE": str(root)}.items():
            patch.setenv(name, value)
        with connected(nodes.address) as cluster:
            yield RayStaff(LikeNodes(cluster))


def three_rounds(pool: WorkPool, marker: str = "") -> list[list[int]]:
    """Of three shards; the second round ends a worker where there is a marker to leave."""
    shards = pool.shards(purse, [10, 20, 30])
    out = [shards.each(put_in, [1, 2, 3])]
    if marker:
        out.append(shards.each(end_once, [(marker, more) for more in (1, 2, 3)]))
    else:
        out.append(shards.each(put_in, [1, 2, 3]))
    return [*out, shards.each(times, [1, 1, 2])]


# 10 + 1, 20 + 2, 30 + 3; the same once more; then times 1, 1 and 2.
EXPECTED = [[11, 22, 33], [12, 24, 36], [12, 24, 72]]


def test_one_process_keeps_places_and_shards() -> None:
    pool = OneProcess()
    assert pool.workplace(purse, 7).map(times, [1, 2, 3]) == [7, 14, 21]
    assert three_rounds(pool) == EXPECTED


def test_a_worker_of_a_node_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has reserved none, and nobody would measure it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    NodeWorker().prepare(())
    assert devices_given() == ()


def test_parts_are_consecutive_and_nearly_equal() -> None:
    assert parts(7, 3) == [range(2), range(2, 4), range(4, 7)]
    assert parts(2, 5) == [range(1), range(1, 2)]


def test_results_come_in_order_from_all_workers(staff: Staff) -> None:
    with StaffedPool(staff, 2) as pool:
        place = pool.workplace(purse, 7)
        assert place.map(times, list(range(50))) == [7 * k for k in range(50)]
        assert place.map(times, []) == []
        assert three_rounds(pool) == EXPECTED
        # 50 calls on the place and three rounds of three shards.
        assert sum(pool.figures.calls.values()) == 59
        assert pool.cpu_s > 0 and pool.figures.speed_up is not None


def test_calls_of_a_lost_worker_are_made_again(staff: Staff, tmp_path: Path) -> None:
    """Shards of the lost worker are built again, with what they had taken."""
    said: list[str] = []
    with StaffedPool(staff, 2, tell=said.append) as pool:
        items = [(str(tmp_path / "map"), k) for k in range(8)]
        found = pool.workplace(purse, 0).map(number_of, items)
        assert found == list(range(8))
        assert three_rounds(pool, str(tmp_path / "shard")) == EXPECTED
        assert len(pool.figures.lost) == len(said) == 2
        assert all("its calls are made again elsewhere" in words for words in said)


def test_what_a_call_raises_is_raised_here(staff: Staff) -> None:
    with StaffedPool(staff, 2) as pool:
        place = pool.workplace(purse, 1)
        with pytest.raises(ParameterError, match="number is 3; it must be another"):
            place.map(refuse_three, [1, 2, 3])
        assert place.map(times, [4]) == [4]


def test_calls_that_end_every_worker_end_the_training(staff: Staff) -> None:
    with (
        StaffedPool(staff, 1) as pool,
        pytest.raises(OptbenchError, match="3 workers in a row were lost with the same calls of"),
    ):
        pool.workplace(purse, 1).map(end_always, [1])


def test_workers_that_cannot_start_leave_no_process() -> None:
    """The failure is raised at once, and nothing is left that keeps the training from ending."""
    before = set(multiprocessing.active_children())
    with pytest.raises(OptbenchError, match="unknown kernel 'no such kernel'"):
        StaffedPool(ProcessStaff(("no such kernel",)), 2).__enter__()
    assert set(multiprocessing.active_children()) <= before
