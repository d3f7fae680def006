"""hgnn on arriving work: encoded at arrivals, verified, and blind to what comes later."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.sim.kernel.state import partial_schedule
from optbench.testing.causality import compared, streams_for
from solvers.hgnn import Hgnn
from solvers.hgnn.online_play import JobEdges, OnlinePlay


def test_its_decisions_are_verified_and_timed(stream: Instance, checkpoint: Path) -> None:
    solver = Hgnn(checkpoint=str(checkpoint))
    play = OnlinePlay(stream, solver.network(stream), solver.readouts(stream))
    trace = play.play(math.inf)
    assert trace.schedule is not None
    verdict = verify(stream, trace.schedule)
    assert verdict.violations == ()
    assert len(trace.decision_s) == stream.num_tasks == len(trace.schedule.task)
    again = solver.play(stream, np.random.default_rng(0)).schedule
    assert again is not None and (again.mode == trace.schedule.mode).all()


def test_no_decision_uses_what_comes_later(checkpoint: Path) -> None:
    """On all hand-made streams, with other, absent and repeated jobs later."""
    for weights in ("trained", "table"):
        policy = Hgnn(checkpoint=str(checkpoint), weights=weights)
        streams = streams_for(policy, "hgnn")
        found = [each for stream in streams for each in compared(policy, stream, (0.5,))]
        assert found and [str(each) for each in found if each.difference is not None] == []


def test_readouts_change_what_is_decided(stream: Instance, checkpoint: Path) -> None:
    solver = Hgnn(checkpoint=str(checkpoint))
    with_them, without = (
        OnlinePlay(stream, solver.network(stream), readouts).play(math.inf).schedule
        for readouts in (solver.readouts(stream), None)
    )
    assert with_them is not None and without is not None
    assert verify(stream, with_them).objectives != verify(stream, without).objectives


def test_it_stops_where_it_is_told(stream: Instance, checkpoint: Path) -> None:
    solver = Hgnn(checkpoint=str(checkpoint))
    last = float(stream.tasks.release.max())
    early, most = (
        solver.play(stream, np.random.default_rng(0), until=until)
        for until in (float(stream.tasks.release.min()) / 2, last)
    )
    assert early.schedule is None and most.schedule is None
    begun = [len(partial_schedule(stream, each.plant, each.state).task) for each in (early, most)]
    assert begun[0] == 0 < begun[1] < stream.num_tasks


def test_edges_of_a_job_by_its_tasks(cluster: Instance) -> None:
    """Those with both ends among the tasks, numbered by place in the list."""
    tasks = np.array([0, 2, 3, 5, 9])
    found = JobEdges(cluster).among(tasks)
    pairs = zip(cluster.edges.source.tolist(), cluster.edges.target.tolist(), strict=True)
    listed = tasks.tolist()
    expected = {(listed.index(a), listed.index(b)) for a, b in pairs if {a, b} <= set(listed)}
    assert set(zip(found.source.tolist(), found.target.tolist(), strict=True)) == expected
    assert len(expected) > 0
