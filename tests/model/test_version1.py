"""Files of version 1, in which time could be seconds: small ones by hand, read as what they are
now.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError
from optbench.model.files.instance_json import read_instance, write_instance
from optbench.model.files.schedule_json import read_schedule, schedule_to_dict
from optbench.model.instance import Instance
from optbench.model.repair import verified_or_repaired
from optbench.model.streams import outages_in_seconds, with_stream
from optbench.model.verify import verify

IN_TICKS = """{
  "format": "optbench-instance", "version": 1, "name": "ticks", "domain": "ticks", \
"tick_s": 0.5, "horizon": 40.0,
  "preemptive": false, "objective": [{"makespan": 1.0}, {"cost_usd": 2.0}],
  "tasks": {"kind": [0, 0], "units": [1.0, 2.0], "release": [0, 3], "deadline": [null, 30.0],
            "deadline_hard": [false, true], "weight": [1.0, 1.0], "memory_gb": [0.0, 0.0]},
  "edges": {"source": [0], "target": [1], "data_gb": [0.0]},
  "places": {"names": ["cluster"], "parent": [-1]},
  "pools": {"names": ["gpu"], "place": [0], "count": [1], "idle_w": [10.0], "sleep_w": [0.0], \
"gated": [false],
            "memory_gb": [null]},
  "modes": {"kinds": ["k"], "kind": [0], "time_per_unit_s": [2.0], \
"energy_per_unit_j": [100.0], "power_w": [50.0],
            "clock": [null], "needs": [[[0, 1]]]},
  "limits": {"cap_place": [], "cap_w": [], "metric_max": {"makespan": 39.0}},
  "tariffs": {"times": [0.0, 10.0], "price_usd_per_kwh": [[0.1, 0.2]], \
"carbon_g_per_kwh": [[0.0, 0.0]]}
}"""
IN_SECONDS = """{
  "format": "optbench-instance", "version": 1, "name": "seconds", "domain": "seconds", \
"tick_s": 1.0, "horizon": 100.25,
  "preemptive": true, "objective": [{"makespan": 1.0, "energy_j": 3.0}],
  "tasks": {"kind": [0, 0], "units": [1.0, 3.0], "release": [0.0, 0.3333333333333333], \
"deadline": [null, 50.1],
            "deadline_hard": [false, true], "weight": [1.0, 1.0], "memory_gb": [0.0, 0.0]},
  "edges": {"source": [], "target": [], "data_gb": []},
  "places": {"names": ["cluster"], "parent": [-1]},
  "pools": {"names": ["gpu"], "place": [0], "count": [1], "idle_w": [10.0], "sleep_w": [0.0], \
"gated": [false],
            "memory_gb": [null]},
  "modes": {"kinds": ["k"], "kind": [0], "time_per_unit_s": [0.1], \
"energy_per_unit_j": [100.0], "power_w": [1000.0],
            "clock": [null], "needs": [[[0, 1]]]},
  "limits": {"cap_place": [0], "cap_w": [1000.0], "metric_max": {"makespan": 60.0}},
  "tariffs": {"times": [0.0, 0.5], "price_usd_per_kwh": [[0.1, 0.2]], \
"carbon_g_per_kwh": [[0.0, 0.0]]},
  "stream": {"ingress_names": ["door"], "latency_s": [[0.05]], "ingress": [0, 0], \
"sent_to": [-1, -1], "opens": null,
             "outages": {"time": [0.7, 0.9], "pool": [0, 0], "devices": [1, -1], \
"announced": [true, true]}}
}"""


def built(seconds: bool) -> Instance:
    """The same instance as each file's, declared today."""
    m = (
        ob.Model(tick_s="auto", horizon_s=100.25, preemptive=True)
        if seconds
        else ob.Model(tick_s=0.5, horizon_s=20)
    )
    gpu = m.pool("gpu", idle_w=10)
    kind = m.kind(
        modes=[
            m.mode(gpu, time_s=0.1, energy_j=100)
            if seconds
            else m.mode(gpu, time_s=2, energy_j=100)
        ]
    )
    if seconds:
        m.tasks([1, 3], kind=kind, release_s=[0, 1 / 3], deadline_s=[np.inf, 50.1])
        m.limit(makespan=60.0, power_w=1000.0)
        m.tariff(price_usd_per_kwh=[0.1, 0.2], carbon_g_per_kwh=0.0, times_s=[0, 0.5])
        m.minimize(makespan=1.0, energy_j=3.0)
        instance = m.build()
        return with_stream(
            instance,
            latency_s=[[0.05]],
            outages=outages_in_seconds(instance, [0.7, 0.9], 0, [1, -1]),
        )
    first, second = m.tasks([1, 2], kind=kind, release_s=[0, 1.5], deadline_s=[np.inf, 15])
    m.precede(first, second)
    m.limit(makespan=39.0)
    m.tariff(price_usd_per_kwh=[0.1, 0.2], carbon_g_per_kwh=0.0, times_s=[0, 5])
    m.minimize_in_order("makespan", {"cost_usd": 2.0})
    return m.build()


def read(text: str, tmp_path: Path) -> Instance:
    path = tmp_path / "old.json"
    path.write_text(text)
    return read_instance(path)


@pytest.mark.parametrize("seconds", [False, True])
def test_an_old_instance_is_the_one_that_would_be_declared_today(
    seconds: bool, tmp_path: Path
) -> None:
    instance = read(IN_SECONDS if seconds else IN_TICKS, tmp_path)
    assert instance.hash == built(seconds).hash
    write_instance(instance, tmp_path / "new.json")
    written = json.loads((tmp_path / "new.json").read_text())
    assert written["version"] == 2 and "domain" not in written
    assert read_instance(tmp_path / "new.json").hash == instance.hash


def test_seconds_are_rounded_as_declared_ones_are(tmp_path: Path) -> None:
    instance = read(IN_SECONDS, tmp_path)
    assert instance.tick_s == 1e-9 and instance.horizon == 100_250_000_000
    assert instance.tasks.release.tolist() == [
        0,
        333_333_334,
    ] and instance.tasks.deadline.tolist() == [np.inf, 50_100_000_000]
    assert instance.tariffs is not None and instance.tariffs.times.tolist() == [0, 500_000_000]
    assert instance.stream is not None and instance.stream.outages.time.tolist() == [
        700_000_000,
        900_000_000,
    ]
    assert instance.limits.metric_max == {"makespan_s": 60.0}
    assert instance.objective.metrics == {"makespan_s", "energy_j"}
    columns = (instance.tasks.release, instance.tariffs.times, instance.stream.outages.time)
    assert all(column.dtype == np.int64 for column in columns)


def test_ticks_stay_what_they_are(tmp_path: Path) -> None:
    instance = read(IN_TICKS, tmp_path)
    assert (instance.tick_s, instance.horizon) == (0.5, 40) and isinstance(instance.horizon, int)
    assert instance.tasks.deadline.tolist() == [
        np.inf,
        30,
    ] and instance.pairs.duration.tolist() == [4, 8]
    assert instance.objective.metrics == {
        "makespan",
        "cost_usd",
    } and instance.limits.metric_max == {"makespan": 39.0}


def test_without_a_horizon_the_tick_is_the_automatic_one(tmp_path: Path) -> None:
    """300,000 s after the latest release, or of the lag of a link: 10 ns."""
    data = json.loads(IN_SECONDS) | {"horizon": None}
    data["tasks"]["deadline"] = [None, None]
    assert read(json.dumps(data), tmp_path).tick_s == 1e-9
    data["modes"]["time_per_unit_s"] = [100_000.0]
    assert read(json.dumps(data), tmp_path).tick_s == 1e-8
    data["modes"]["time_per_unit_s"] = [0.1]
    links = {
        "sender": [0],
        "receiver": [1],
        "latency_s": [1e6],
        "s_per_gb": [0.0],
        "j_per_gb": [0.0],
    }
    pools = {
        key: [*values, "other" if key == "names" else values[0]]
        for key, values in data["pools"].items()
    }
    tariffs = {
        key: value if key == "times" else [*value, value[0]]
        for key, value in data["tariffs"].items()
    }
    stream = data["stream"] | {"latency_s": [[0.05, 0.05]]}
    two = data | {"pools": pools, "links": links, "tariffs": tariffs, "stream": stream}
    assert read(json.dumps(two), tmp_path).tick_s == 1e-8


def schedule(domain: str, **segments: list[Any]) -> str:
    head = {
        "format": "optbench-schedule",
        "version": 1,
        "instance": "old",
        "instance_hash": "0" * 64,
    }
    return json.dumps({**head, "domain": domain, "segments": segments})


def test_an_old_schedule_in_ticks(tmp_path: Path) -> None:
    instance, path = read(IN_TICKS, tmp_path), tmp_path / "schedule.json"
    path.write_text(
        schedule("ticks", task=[0, 1], mode=[0, 0], start=[0, 4], end=[4.0, 12.0], units=[1.0, 2.0])
    )
    made = read_schedule(path, instance)
    assert made.start.dtype == made.end.dtype == np.int64
    # Up to tick 10 a kWh costs 0.1, then 0.2: 100 J, 150 J and 50 J of the second task, and 14 s of
    # 10 W at rest.
    paid = 2 * (100 * 0.1 + 150 * 0.1 + 50 * 0.2 + 140 * 0.2) / 3.6e6
    assert verify(instance, made).objectives == pytest.approx((12.0, paid))
    assert schedule_to_dict(made, instance)["segments"] == {
        "task": [0, 1],
        "mode": [0, 0],
        "start": [0, 4],
        "end": [4, 12],
    }


def test_an_old_schedule_in_seconds_is_rounded_and_repaired(tmp_path: Path) -> None:
    """The release of 1/3 s is now 333,333,334 ns; the old start, 1/3 + 0.05, is rounded to the tick
    before its way in ends.
    """
    instance, path = read(IN_SECONDS, tmp_path), tmp_path / "schedule.json"
    start, end = [0.05, 1 / 3 + 0.05], [0.05 + 0.1, 1 / 3 + 0.05 + 0.3]
    path.write_text(
        schedule("seconds", task=[0, 1], mode=[0, 0], start=start, end=end, units=[1, 3])
    )
    made = read_schedule(path, instance)
    assert made.start.tolist() == [50_000_000, 383_333_333]
    assert [violation.constraint for violation in verify(instance, made).violations] == ["access"]
    found = verified_or_repaired(instance, made)
    assert found.verdict.feasible and (found.segments_moved, found.largest_move) == (1, 1)


def test_a_start_just_before_time_0_is_time_0(tmp_path: Path) -> None:
    """−1e-10 s once bought energy at the tariff's last price."""
    instance, path = read(IN_SECONDS, tmp_path), tmp_path / "schedule.json"
    path.write_text(
        schedule(
            "seconds",
            task=[0, 1],
            mode=[0, 0],
            start=[-1e-10, 1.0],
            end=[0.1 - 1e-10, 1.3],
            units=[1, 3],
        )
    )
    assert read_schedule(path, instance).start.tolist() == [0, 10**9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": "hours"}, "domain is 'hours'; it must be 'ticks' or 'seconds'"),
        ({"domain": None}, "domain is null"),
        ({"horizon": "soon"}, "horizon is 'soon'"),
        ({"tasks": []}, "tasks is a list of 0; it must be an object"),
        ({"modes": None}, "modes is null"),
        ({"horizon": None, "modes": []}, "modes is a list of 0; it must be an object"),
        ({"objective": 3}, "objective is 3"),
        ({"stream": 3}, "stream is 3; it must be an object"),
        ({"extra": 1}, "unknown key 'extra'"),
    ],
)
@pytest.mark.parametrize("text", [IN_TICKS, IN_SECONDS], ids=["ticks", "seconds"])
def test_mistakes_in_old_files_are_named(
    text: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileFormatError, match=message):
        read(json.dumps(json.loads(text) | change), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": "hours"}, "domain is 'hours'; it must be 'ticks' or 'seconds'"),
        (
            {"segments": {"task": [0], "mode": [0], "start": [1e300], "end": [1]}},
            r"start\[0\] is 1e\+300; it must be within",
        ),
        (
            {"segments": {"task": [5], "mode": [0], "start": [0], "end": [1]}},
            r"segments\.task\[0\] is 5; it must be from 0 to 1",
        ),
        (
            {"segments": {"task": [0], "mode": [0], "start": ["x"], "end": [1]}},
            r"segments\.start\[0\] is 'x'",
        ),
    ],
)
def test_mistakes_in_old_schedules_are_named(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    instance, path = read(IN_TICKS, tmp_path), tmp_path / "schedule.json"
    path.write_text(
        json.dumps(json.loads(schedule("ticks", task=[0], mode=[0], start=[0], end=[4])) | change)
    )
    with pytest.raises(FileFormatError, match=message):
        read_schedule(path, instance)
