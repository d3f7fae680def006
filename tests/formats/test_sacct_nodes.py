"""Slurm logs: how many devices the nodes have, which of them a run held, and pools node by node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.formats import sacct
from optbench.formats.imported import ImportOptions
from optbench.model.verify import verify
from tests.formats.sacct_logs import A100, found, log
from tests.sample_files.sample_records import sacct_text


def test_nodes_show_how_many_devices_there_are() -> None:
    """n1 has 2 + 1 busy at 50 s; n2 has 2 (half of job 3, then job 4, which begins when job 3
    ends).
    """
    text = log("1 0 0 100 2 n1", "2 0 40 60 1 n1", "3 0 200 300 4 n[1-2]", "4 0 300 400 2 n2")
    assert sacct.read(text, "log").instance.pools.count.tolist() == [3 + 2]
    given = sacct.read(text, "log", ImportOptions(devices_per_node={"gpu": 4}))
    assert given.instance.pools.count.tolist() == [8]
    assert sacct.read(
        text, "log", ImportOptions(counts={"GPU": 40})
    ).instance.pools.count.tolist() == [40]


def test_oversubscribed_nodes_are_named() -> None:
    text = log("1 0 0 100 2 n1", "2 0 40 60 1 n1", "3 0 0 100 2 n2", "4 0 10 20 2 n2")
    result = sacct.read(text, "log", ImportOptions(devices_per_node={"gpu": 2}))
    assert found(result.report, "warnings", "more than 2 devices of type 'gpu' busy at once") == (
        2,
        ("n1: 3", "n2: 4"),
    )
    count, (example,) = found(result.report, "warnings", "breaks capacity")
    assert count == 1 and example.startswith("pool gpu has 6 busy devices of 4 at 10")
    assert result.schedule is not None and not verify(result.instance, result.schedule).feasible


def test_a_run_larger_than_the_cluster_is_dropped() -> None:
    result = sacct.read(
        log("1 0 0 100 2 n1", "2 0 0 100 8 n[1-2]"), "log", ImportOptions(counts={"gpu": 4})
    )
    assert result.instance.tasks.names == ("1",)
    assert found(result.report, "dropped", "more devices than there are") == (
        1,
        ("line 3, job '2': 8 gpu",),
    )


def test_by_node_a_run_may_go_where_there_is_room() -> None:
    """n1 shows 3 devices, n2 and n3 two each; the gang of 2 + 2 has run on n1 and n2 and on n2 and
    n3, never on n1 and n3.
    """
    rows = (
        "1 0 0 90 3 n1",
        "2 0 0 90 2 n2",
        "3 0 0 90 2 n3",
        "4 0 100 200 4 n[1-2]",
        "5 0 200 300 4 n[2-3]",
        "6 0 300 400 1 n3",
    )
    result = sacct.read(log(*rows, "7 0 300 400 1 (null)"), "log", ImportOptions(by_node=True))
    instance, schedule, modes = result.instance, result.schedule, result.instance.modes
    assert instance.places.names == (
        "cluster",
        "n1",
        "n2",
        "n3",
    ) and instance.pools.place.tolist() == [1, 2, 3]
    assert instance.pools.names == (
        "n1/gpu",
        "n2/gpu",
        "n3/gpu",
    ) and instance.pools.count.tolist() == [3, 2, 2]
    needs = [
        dict(zip(modes.req_pool[a:b].tolist(), modes.req_count[a:b].tolist(), strict=True))
        for a, b in zip(modes.req_ptr[:-1], modes.req_ptr[1:], strict=True)
    ]
    by_task = [[needs[m] for m in instance.pairs.mode[instance.pairs.task == i]] for i in range(6)]
    assert by_task[0] == [{0: 3}] and by_task[1] == by_task[2] == [{0: 2}, {1: 2}, {2: 2}]
    assert by_task[3] == by_task[4] == [{0: 2, 1: 2}, {1: 2, 2: 2}]
    assert by_task[5] == [{0: 1}, {1: 1}, {2: 1}]
    assert schedule is not None and verify(instance, schedule).feasible
    assert [needs[m] for m in schedule.mode] == [
        {0: 3},
        {1: 2},
        {2: 2},
        {0: 2, 1: 2},
        {1: 2, 2: 2},
        {2: 1},
    ]
    assert found(result.report, "dropped", "cannot be placed by node") == (
        1,
        ("line 8, job '7': 1 gpu",),
    )


def test_by_node_and_by_type_agree_on_time_and_energy() -> None:
    node, kind = (
        sacct.read(sacct_text(), "log", replace(A100, by_node=flag)) for flag in (True, False)
    )
    assert node.schedule is not None and kind.schedule is not None
    ours, theirs = verify(node.instance, node.schedule), verify(kind.instance, kind.schedule)
    assert ours.feasible and theirs.feasible
    for name in ("makespan_s", "energy_j", "busy_energy_j", "flow_time_s"):
        assert ours.metrics[name] == pytest.approx(theirs.metrics[name], rel=1e-12)
    clocks = node.instance.modes.clock[node.schedule.mode]
    assert set(clocks[np.isfinite(clocks)]) == {1.0}


def test_by_node_what_a_node_cannot_hold_is_dropped() -> None:
    result = sacct.read(
        log("1 0 0 90 3 n1", "2 0 0 90 2 n2"),
        "log",
        ImportOptions(by_node=True, devices_per_node={"gpu": 2}),
    )
    assert result.instance.tasks.names == ("2",)
    assert found(result.report, "dropped", "more devices of a node than it has") == (
        1,
        ("line 2, job '1': 3 gpu",),
    )


@pytest.mark.parametrize("by_node", [False, True])
def test_what_is_inferred_from_a_log_holds_its_schedule(by_node: bool) -> None:
    """Random runs on one to three nodes, two types, some back to back: the record is feasible, and
    loses no run.
    """
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = []
        for job in range(30):
            start = 10 * int(rng.integers(0, 60))
            nodes = ",".join(f"n{n}" for n in rng.permutation(5)[: rng.integers(1, 4)])
            gpus = f"{rng.integers(1, 9)}"
            gpus = (
                f"{gpus},gres/gpu:k80={gpus}"
                if rng.random() < 0.7
                else "5,gres/gpu:k80=2,gres/gpu:l4=3"
            )
            rows.append(
                f"{job} {rng.integers(0, start + 1)} {start} {start + 10 * rng.integers(1, 9)} "
                f"{gpus} {nodes}"
            )
        result = sacct.read(log(*rows), "log", ImportOptions(by_node=by_node))
        assert result.schedule is not None and result.instance.num_tasks == 30
        verdict = verify(result.instance, result.schedule)
        assert verdict.feasible, verdict.violations
        assert not result.report.dropped and not result.report.warnings


def test_counts_are_not_used_by_node() -> None:
    result = sacct.read(log("1 0 0 90 3 n1"), "log", ImportOptions(by_node=True, counts={"gpu": 9}))
    assert result.instance.pools.count.tolist() == [3]
    assert (
        found(
            result.report, "warnings", "counts of gpu are not used by node; give devices_per_node"
        )[0]
        == 1
    )
