"""Arriving work in the model: mistakes named, each promise of a schedule broken once, every metric
by hand, files.

The instance, in seconds of two ticks each: pool ``near`` of 2 devices, 10 W each at rest, and
``far`` of 1 device without; a unit takes 1 s and 20 J on one device of either, on two of near 0.5 s
and 30 J. Jobs of 4, 6 and 8 units come in at 2, 3 and 12; from the door near is 1 s away and far 2
s. Watched from 2 to 20. From 8 to 14 one device of near is away.

Feasible: a on one device of near from 3 to 7; b on near from 4 to 8 (4 of its 6 units), and, when
the outage at 8 has stopped it, on far from 8 to 10; c on near from 14 on with 5 of its 8 units done
at 19 on one device, and still at it at 20: 6 units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError, ModelError
from optbench.model.files.instance_json import instance_from_dict, instance_to_dict
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.stream_metrics import queue_counts
from optbench.model.streams import Outages, Stream, with_stream, without_latencies
from optbench.model.validate import validate
from optbench.model.verify import verify

ONE, TWO, FAR = 0, 1, 2
TICK_S = 0.5
# Task, mode, start and end in seconds.
Rows = list[list[float]]
ROWS: Rows = [[0, ONE, 3, 7], [1, ONE, 4, 8], [1, FAR, 8, 10], [2, ONE, 14, 20]]


def outages(*rows: tuple[float, int, int]) -> Outages:
    time, pool, devices = zip(*rows, strict=True)
    ticks = np.array(time) / TICK_S
    return Outages(
        ticks.astype(np.int64), np.array(pool), np.array(devices), np.zeros(len(rows), dtype=bool)
    )


def instance(**changes: Any) -> Instance:
    m = ob.Model("door", tick_s=TICK_S, preemptive=True, horizon_s=20)
    near, far = m.pool("near", count=2, idle_w=10), m.pool("far")
    modes = [
        m.mode(near, 1.0, energy_j=20),
        m.mode({near: 2}, 0.5, energy_j=30),
        m.mode(far, 1.0, energy_j=20),
    ]
    m.tasks(
        [4.0, 6.0, 8.0],
        kind=m.kind(modes=modes),
        release_s=[2.0, 3.0, 12.0],
        deadline_s=[9.0, 9.0, 19.0],
        hard=False,
    )
    m.minimize(energy_j=1.0)
    options: dict[str, Any] = {
        "latency_s": [[1.0, 2.0]],
        "ingress_names": ("door",),
        "opens": 4,
        "outages": outages((8.0, 0, 1), (14.0, 0, -1)),
    } | changes
    return with_stream(m.build(), **options).with_objective(Objective.weighted({"j_per_unit": 1.0}))


def schedule(rows: Rows) -> Schedule:
    table = np.array(rows, dtype=float).reshape(-1, 4) / [1, 1, TICK_S, TICK_S]
    return Schedule(*table.astype(np.int64).T)


def named(made: Instance, rows: Rows) -> list[str]:
    return [violation.constraint for violation in verify(made, schedule(rows)).violations]


def test_every_metric_by_hand() -> None:
    """Busy: 16 units of 20 J = 320 J. Devices of near are busy for 4 + 4 + 6 of 2 · 18
    device-seconds: 22 · 10 W = 220 J.
    """
    verdict = verify(instance(), schedule(ROWS))
    assert verdict.violations == () and verdict.objective == pytest.approx(540.0 / 16.0)
    known = {
        "arrivals": 3,
        "completed": 2,
        "in_progress": 1,
        "queue_end": 0,
        "units_offered": 18,
        "units_done": 16,
        "energy_j": 540,
        "busy_energy_j": 320,
        "rest_energy_j": 220,
        "j_per_unit": 33.75,
        # In the system: a for 5 s, b for 7 s, c for 8 s up to the end. At work: 4, 6 and 6.
        "sojourn_mean_s": 6,
        "sojourn_p50_s": 6,
        "sojourn_p99_s": 6.98,
        "sojourn_censored_s": 20 / 3,
        "service_mean_s": 5,
        "flow_time_s": 20,
        "queue_mean": (20 - 16) / 18,
        # b ends at 10 and was due at 9, c is not done at the end and was due at 19.
        "slo_violation": 2 / 3,
        "late_tasks": 2,
        "tardiness_s": 2,
        "makespan": 40,
        "makespan_s": 20,
    }
    assert {name: verdict.metrics[name] for name in known} == pytest.approx(known)


def test_units_as_they_are_logged_by_hand() -> None:
    """Sampled every 20 s: nothing runs at 0; c runs at the end, a sample of 20 units; a adds 7 mod
    20, b 10 mod 20 and 8.
    """
    assert verify(instance(), schedule(ROWS)).metrics["j_per_unit_logged"] == pytest.approx(
        540.0 / (20 + 7 + 8 + 10)
    )


def test_where_nothing_is_completed() -> None:
    """c alone runs, from 14 to 20: a waits for 18 s, b for 17 s; near is busy for 6 of 2 · 18 s."""
    verdict = verify(instance(), schedule([ROWS[3]]))
    known = {
        "arrivals": 3, "completed": 0, "in_progress": 1, "queue_end": 2, "units_done": 6,
        "service_mean_s": 0, "sojourn_mean_s": (18 + 17 + 8) / 3, "slo_violation": 1,
        "queue_mean": (18 + 17 + 8 - 6) / 18, "busy_energy_j": 120, "rest_energy_j": 300,
    }  # fmt: skip
    assert {name: verdict.metrics[name] for name in known} == pytest.approx(known)


def test_what_waits_at_a_time() -> None:
    """a is on its way at 2.5, b at 3.5, c waits from 12 to 14; nothing before the first arrival."""
    times = np.array([1.0, 2.5, 3.5, 5.0, 12.0, 13.9, 14.0, 19.0])
    assert queue_counts(instance(), schedule(ROWS), times / TICK_S).tolist() == [
        0,
        1,
        1,
        0,
        1,
        1,
        0,
        0,
    ]


def test_a_drained_instance_has_everything_done_and_no_open_end() -> None:
    made = replace(instance(opens=None), horizon=None)
    assert "open_end" not in made.features and named(made, ROWS) == ["assignment"]
    rows: Rows = [*ROWS[:3], [2, ONE, 14, 22]]
    verdict = verify(made, schedule(rows))
    assert verdict.feasible and verdict.metrics["rest_energy_j"] == 10 * (2 * 22 - 16)
    assert verdict.metrics["sojourn_censored_s"] == pytest.approx((5 + 7 + 10) / 3)


BREAKS: dict[str, tuple[Rows, list[str]]] = {
    "before it is there": ([[0, ONE, 2.5, 6.5], *ROWS[1:]], ["access"]),
    "a later part may go on elsewhere": (ROWS, []),
    "a later part before it is there": (
        [ROWS[0], [1, ONE, 4, 4.5], [1, FAR, 4.5, 10], ROWS[3]],
        ["access"],
    ),
    "more than all of it is waste and no fault": ([*ROWS[:3], [2, TWO, 14, 18.5]], []),
    "an empty part": ([*ROWS, [1, FAR, 12, 12]], ["duration"]),
    "on a device that is away": ([ROWS[0], [1, ONE, 9, 15], [2, ONE, 13, 19]], ["capacity"]),
    "both devices while one is away": ([*ROWS[:3], [2, TWO, 13, 17]], ["capacity"]),
    "beyond the horizon": ([*ROWS[:3], [2, ONE, 14, 22]], ["horizon"]),
    "nothing at all": ([], ["assignment"]),
    "twice at once": ([*ROWS[:2], [1, FAR, 7, 9], ROWS[3]], ["self_overlap"]),
}


@pytest.mark.parametrize("how", BREAKS)
def test_each_promise_broken_once(how: str) -> None:
    rows, constraints = BREAKS[how]
    assert named(instance(), rows) == constraints


def test_what_has_begun_runs_on_to_the_horizon_where_it_cannot_be_interrupted() -> None:
    made = replace(instance(outages=None), preemptive=False)
    whole: Rows = [ROWS[0], [1, FAR, 5, 11]]
    assert named(made, whole) == named(made, [*whole, ROWS[3]]) == []
    assert named(made, [*whole, [2, ONE, 14, 19]]) == ["duration"]
    assert named(made, [*whole, [2, ONE, 14, 16], [2, ONE, 18, 20]]) == [
        "duration",
        "single_segment",
    ]


def test_tasks_at_the_door_reach_at_once_what_they_can_reach() -> None:
    made = instance(latency_s=[[1.0, np.inf]], sent_to=[0, -1, -1])
    assert made.stream is not None
    here = without_latencies(made.stream, np.array([2, 0]))
    assert here.latency_s.tolist() == [[0.0, np.inf]]
    assert (here.ingress.tolist(), here.sent_to.tolist()) == ([0, 0], [-1, 0])
    assert len(here.outages.time) == 0 and here.opens is None


def test_a_pool_without_a_way_cannot_be_used() -> None:
    made = instance(latency_s=[[1.0, np.inf]])
    whole: Rows = [ROWS[0], [1, FAR, 5, 11]]
    verdict = verify(replace(made, preemptive=False), schedule(whole))
    assert [violation.constraint for violation in verdict.violations] == ["access"]
    assert "starts in far at 5 s, which it cannot reach" in verdict.violations[0].message
    assert verdict.violations[0].amount == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latency_s": [[1.0, -2.0]]}, "latency from 'door' to pool 'far' is -2.0"),
        ({"latency_s": [[1.0, np.nan]]}, "latency from 'door' to pool 'far' is nan"),
        (
            {"latency_s": [[1.0, 2.0, 3.0]]},
            r"stream.latency_s has shape \(1, 3\); it must be ingresses x pools, \(1, 2\)",
        ),
        ({"ingress": [0, 1, 0]}, "stream.ingress of task 't1' is 1; it must be 0 to 0"),
        ({"sent_to": [0, 5, -1]}, "stream.sent_to of task 't1' is 5; it must be -1 to 1"),
        (
            {"sent_to": [0, 1, 0], "latency_s": [[1.0, np.inf]]},
            "task 't1' is sent to 'far', which it cannot reach",
        ),
        (
            {"latency_s": [[np.inf, np.inf]]},
            r"task 't0' arrives at 'door', from where no pool that runs .* can be reached",
        ),
        ({"opens": 40}, "stream.opens is 40, the horizon 40"),
        ({"opens": -1}, "stream.opens is -1"),
        ({"opens": 1.5}, "stream.opens is 1.5; it must be a whole number of ticks"),
        ({"outages": outages((8.0, 0, 3))}, "outages: 3 of 2 devices of pool 'near' would be gone"),
        ({"outages": outages((8.0, 0, -1))}, "outages: -1 of 2 devices"),
        (
            {"outages": outages((8.0, 0, 1), (7.0, 0, -1))},
            "stream.outages.time must be whole ticks, not negative, and in order",
        ),
        (
            {"outages": outages((-1.0, 0, 1))},
            "stream.outages.time must be whole ticks, not negative",
        ),
        ({"outages": outages((8.0, 2, 1))}, "stream.outages.pool must be 0 to 1"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        instance(**changes)


def test_a_pool_that_can_be_reached_but_is_too_small_does_not_count() -> None:
    m = ob.Model("memory", time="seconds")
    small, big = m.pool("small", memory_gb=8.0), m.pool("big", memory_gb=16.0)
    m.tasks([3.0, 3.0], modes=[m.mode(small, 1.0), m.mode(big, 1.0)], memory_gb=[8.0, 10.0])
    m.minimize(energy_j=1.0)
    with pytest.raises(
        ModelError,
        match=r"task 't1' arrives at 'in0', from where "
        r"no pool that runs .* in 10 GB can be reached",
    ):
        with_stream(m.build(), latency_s=[[0.0, np.inf]])
    with pytest.raises(ModelError, match="task 't1' is sent to 'small'"):
        with_stream(m.build(), sent_to=[0, 0])


def test_work_on_no_pool_needs_no_way() -> None:
    m = ob.Model("paper", time="seconds")
    m.pool("gpu")
    m.tasks([3.0], modes=[m.mode(None, 1.0)])
    m.minimize(makespan_s=1.0)
    made = with_stream(m.build(), latency_s=[[np.inf]])
    assert verify(made, Schedule.of(made, [0], [0])).feasible


def test_outages_and_open_ends_ask_for_their_kind_of_instance() -> None:
    m = ob.Model("shop", horizon_s=9)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=2)])
    m.minimize(makespan=1.0)
    ticks = m.build()
    with pytest.raises(ModelError, match="the instance must be preemptive"):
        with_stream(ticks, outages=outages((1.0, 0, 1), (2.0, 0, -1)))
    assert "open_end" in with_stream(ticks, opens=0).features
    with pytest.raises(ModelError, match=r"stream\.opens is 0, the horizon None"):
        with_stream(replace(ticks, horizon=None), opens=0)
    with pytest.raises(ModelError, match=r"stream\.outages has columns of 1, 1, 1, 2 rows"):
        with_stream(
            replace(ticks, preemptive=True),
            outages=replace(outages((1.0, 0, 1)), announced=np.zeros(2, dtype=bool)),
        )


def edited(edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data = instance_to_dict(instance(latency_s=[[1.0, np.inf]], sent_to=[0, 0, -1]))
    edit(data["stream"])
    return data


def test_a_file_says_everything() -> None:
    data = edited(lambda stream: None)
    assert data["stream"]["latency_s"] == [[1.0, None]] and data["stream"]["sent_to"] == [0, 0, -1]
    assert (
        instance_from_dict(data).hash
        == instance(latency_s=[[1.0, np.inf]], sent_to=[0, 0, -1]).hash
    )


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda stream: stream.pop("ingress"), "stream.ingress is missing"),
        (lambda stream: stream.update(way=[]), "unknown key 'stream.way'"),
        (
            lambda stream: stream["latency_s"][0].append(3.0),
            r"stream\.latency_s\[0\] has 3 entries; it must have 2",
        ),
        (
            lambda stream: stream["latency_s"].append([1.0, 1.0]),
            r"stream\.latency_s has 2 entries; it must have 1",
        ),
        (
            lambda stream: stream["latency_s"][0].__setitem__(1, "far"),
            r"stream\.latency_s\[0\]\[1\] is 'far'",
        ),
        (lambda stream: stream["ingress"].pop(), r"stream\.ingress has 2 entries; it must have 3"),
        (
            lambda stream: stream["ingress"].__setitem__(0, 1.5),
            r"stream\.ingress\[0\] is 1\.5; it must be a whole number",
        ),
        (lambda stream: stream.update(opens="now"), r"stream\.opens is 'now'"),
        (
            lambda stream: stream["outages"]["pool"].pop(),
            r"stream\.outages\.pool has 1 entries; it must have 2",
        ),
        (
            lambda stream: stream["outages"].update(announced=[0, 1]),
            r"stream\.outages\.announced\[0\] is 0; it must be true",
        ),
        (
            lambda stream: stream["outages"]["devices"].__setitem__(0, 9),
            "9 of 2 devices of pool 'near' would be gone",
        ),
    ],
)
def test_mistakes_in_a_file_are_named(
    edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises((FileFormatError, ModelError), match=message):
        validate(instance_from_dict(edited(edit)))


def test_every_number_of_a_stream_is_in_the_hash() -> None:
    base = instance()
    assert isinstance(base.stream, Stream)
    hashes = {base.hash}
    for changes in (
        {"latency_s": [[1.0, 2.5]]},
        {"sent_to": [0, -1, -1]},
        {"opens": 1},
        {"outages": None},
        {"opens": None},
        {"outages": outages((8.0, 0, 1), (14.5, 0, -1))},
        {"latency_s": [[1.0, 2.0]] * 2, "ingress_names": ("a", "b")},
        {"latency_s": [[1.0, 2.0]] * 2, "ingress_names": ("a", "b"), "ingress": [0, 1, 0]},
    ):
        hashes.add(instance(**changes).hash)
    assert len(hashes) == 9
    assert instance(ingress_names=("gate",)).hash == base.hash
