"""Native files: what is written is read back bit for bit, conforms to the published schemas, and
mistakes are named.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from optbench.errors import FileFormatError, UnknownNameError
from optbench.formats.classical import assemble
from optbench.model.files.instance_json import (
    instance_from_dict,
    instance_to_dict,
    instance_to_json,
    read_instance,
    write_instance,
)
from optbench.model.files.result_json import result_to_dict, write_result
from optbench.model.files.schedule_json import read_schedule, schedule_to_dict, write_schedule
from optbench.model.files.schemas import KINDS, schema
from optbench.model.instance import Instance
from optbench.model.result import Bound, Result, TrajectoryPoint
from optbench.model.schedule import Schedule
from tests.reference.random_instances import tiny_instance
from tests.sample_files.inputs import arrivals, cluster, one_after_the_other, project, shop

INSTANCES = {
    "cluster": cluster(),
    "shop": shop(False),
    "flexible": shop(True),
    "project": project(),
    "arrivals": arrivals(),
}


def validator(kind: str) -> Any:
    return jsonschema.Draft202012Validator(schema(kind))


def assert_same(a: Instance, b: Instance) -> None:
    """Every array, with its type, and every name."""
    assert (a.hash, a.name, a.problem) == (b.hash, b.name, b.problem)
    assert (a.tasks.names, a.pools.names, a.places.names) == (
        b.tasks.names,
        b.pools.names,
        b.places.names,
    )
    assert a.modes.kind_names == b.modes.kind_names
    names = ("tasks", "edges", "places", "pools", "modes", "links", "limits", "tariffs")
    parts = [(getattr(a, name), getattr(b, name)) for name in names]
    if a.stream is not None and b.stream is not None:
        assert (a.stream.ingress_names, a.stream.opens) == (b.stream.ingress_names, b.stream.opens)
        parts += [(a.stream, b.stream), (a.stream.outages, b.stream.outages)]
    for one, two in parts:
        for column in fields(one) if one is not None else ():
            values = getattr(one, column.name)
            if isinstance(values, np.ndarray):
                assert values.dtype == getattr(two, column.name).dtype, column.name
                np.testing.assert_array_equal(values, getattr(two, column.name))


@pytest.mark.parametrize("name", INSTANCES)
def test_instances_survive_and_conform(name: str, tmp_path: Path) -> None:
    path = tmp_path / "instance.json"
    write_instance(INSTANCES[name], path)
    assert_same(read_instance(path), INSTANCES[name])
    validator("instance").validate(json.loads(path.read_text()))


def test_random_instances_survive_and_conform() -> None:
    check = validator("instance")
    for seed in range(60):
        instance = tiny_instance(seed)
        data = json.loads(instance_to_json(instance))
        check.validate(data)
        assert_same(instance_from_dict(data), instance)


def test_awkward_floats_survive() -> None:
    """0.1 + 0.2, the smallest float, and a negative zero; the latest of times."""
    base = INSTANCES["shop"]
    n = base.num_tasks
    numbers, late = np.resize([0.1 + 0.2, 5e-324, -0.0, 1e15 / 3], n), np.full(n, 2**52)
    instance = replace(
        base, tick_s=1 / 7, horizon=2**52, tasks=replace(base.tasks, weight=numbers, release=late)
    )
    assert_same(instance_from_dict(json.loads(instance_to_json(instance))), instance)


def test_hash_ignores_the_type_of_numbers() -> None:
    base = INSTANCES["cluster"]
    limits = replace(base.limits, metric_max={"energy_j": 10_000_000})
    assert replace(base, horizon=8000, limits=limits).hash == base.hash
    assert replace(base, horizon=8001).hash != base.hash


def test_no_deadline_and_no_link_are_null() -> None:
    data = instance_to_dict(INSTANCES["cluster"])
    assert data["tasks"]["deadline"] == [None, 1800, 6000]
    assert data["modes"]["clock"] == [1.0, None, None, None]
    assert instance_to_dict(INSTANCES["shop"])["links"] is None
    assert "Infinity" not in instance_to_json(INSTANCES["cluster"])


TWICE = {
    "sender": [1, 1],
    "receiver": [0, 0],
    "latency_s": [0, 1],
    "s_per_gb": [0, 0],
    "j_per_gb": [0, 0],
}


def changed(*keys: str | int, value: Any) -> dict[str, Any]:
    data = instance_to_dict(INSTANCES["cluster"])
    part: Any = data
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed("tasks", "release", 1, value=1.5),
            r"tasks\.release\[1\] is 1\.5; it must be a whole number",
        ),
        (
            changed("tasks", "deadline_hard", 0, value=1),
            r"tasks\.deadline_hard\[0\] is 1; it must be true or false",
        ),
        (changed("tasks", "names", 2, value=None), r"tasks\.names\[2\] is null; it must be a text"),
        (
            changed("tasks", "names", 0, value="\ud800"),
            r"tasks\.names\[0\] is .*; it must be text without lone surrogates",
        ),
        (changed("tasks", value=[]), "tasks is a list of 0; it must be an object"),
        (
            changed("tasks", "units", 0, value=10**400),
            r"tasks\.units\[0\] is a huge whole number; it must be a finite",
        ),
        (
            changed("modes", "needs", 1, value=[[0, 2], [1]]),
            r"modes\.needs\[1\] is a list of 2; it must be a list of pairs",
        ),
        (
            changed("modes", "kind", value=[0, 1, 0, 1]),
            r"modes\.kind\[2\] is 0; it must be at least 1",
        ),
        (
            changed("modes", "kind", 3, value=2),
            r"modes\.kind\[3\] is 2; it must be the index of one of the 2 kinds",
        ),
        (
            changed("links", "sender", 0, value=5),
            r"links\.sender\[0\] is 5; it must be the index of one of the 2 pools",
        ),
        (
            changed("links", value=TWICE),
            "links, row 1: the link from pool 1 to pool 0 is listed twice",
        ),
        (changed("objective", value=[]), "objective is a list of 0; it must be a list of levels"),
        (
            changed("objective", 0, "tardiness_s", value=0),
            r"objective\[0\]\.tardiness_s is 0; it must be a positive",
        ),
        (changed("domain", value="ticks"), "unknown key 'domain'"),
        (changed("horizon", value=8000.5), r"horizon is 8000\.5; it must be a whole number"),
        (
            changed("tasks", "deadline", 1, value=99.5),
            r"tasks\.deadline\[1\] is 99\.5; it must be a whole number",
        ),
        (
            changed("tariffs", "times", 1, value=1200.5),
            r"tariffs\.times\[1\] is 1200\.5; it must be a whole number",
        ),
        (
            changed("limits", "metric_max", "energy_j", value=True),
            r"limits\.metric_max\.energy_j is true",
        ),
        (
            changed("tariffs", "price_usd_per_kwh", 1, value=[0.1]),
            r"price_usd_per_kwh\[1\] has 1 entries; it must have 2",
        ),
        (
            changed("tariffs", "carbon_g_per_kwh", 1, 1, value="x"),
            r"tariffs\.carbon_g_per_kwh\[1\]\[1\] is 'x'",
        ),
        (changed("version", value=True), "version is true; it must be 1 to 2"),
        ([1], "the file is a list of 1; it must be an object"),
    ],
)
def test_mistakes_are_named(data: Any, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        instance_from_dict(data)


def test_what_would_not_fit_into_memory_is_refused() -> None:
    data = instance_to_dict(INSTANCES["shop"])
    names = [f"p{i}" for i in range(5000)]
    data["pools"] = {
        key: names if key == "names" else [values[0]] * 5000
        for key, values in data["pools"].items()
    }
    with pytest.raises(FileFormatError, match=r"pools\.names has 5,000 entries; at most 4,096"):
        instance_from_dict(data)
    wide = assemble(
        "wide",
        "x",
        ["m"],
        [1],
        [f"t{i}" for i in range(8000)],
        [[(d, ((0, 1),)) for d in range(8000)]] * 8000,
        [],
    )
    with pytest.raises(FileFormatError, match="make 64,000,000 pairs; at most 50,000,000"):
        instance_from_dict(instance_to_dict(wide))


def test_schedules_survive_and_conform(tmp_path: Path) -> None:
    instance, path = INSTANCES["shop"], tmp_path / "schedule.json"
    schedule = one_after_the_other(instance)
    write_schedule(schedule, path, instance)
    again = read_schedule(path, instance)
    for column in fields(Schedule):
        np.testing.assert_array_equal(getattr(again, column.name), getattr(schedule, column.name))
    assert again.start.dtype == np.int64
    validator("schedule").validate(json.loads(path.read_text()))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "task",
            12,
            r"segments\.task\[0\] is 12; it must be from 0 to 11: the instance has 12 tasks",
        ),
        ("mode", -1, r"segments\.mode\[0\] is -1"),
        ("start", 0.5, r"segments\.start\[0\] is 0\.5; it must be a whole number"),
        ("end", None, r"segments\.end\[0\] is null"),
        ("units", [1.0], r"unknown key 'segments\.units'"),
    ],
)
def test_bad_segments_are_named(key: str, value: Any, message: str, tmp_path: Path) -> None:
    instance, path = INSTANCES["shop"], tmp_path / "schedule.json"
    data = schedule_to_dict(one_after_the_other(instance), instance)
    if isinstance(value, list):
        data["segments"][key] = value
    else:
        data["segments"][key][0] = value
    path.write_text(json.dumps(data))
    with pytest.raises(FileFormatError, match=message) as caught:
        read_schedule(path, instance)
    assert str(caught.value).startswith(str(path))


def test_a_schedule_belongs_to_its_instance(tmp_path: Path) -> None:
    instance, path = INSTANCES["shop"], tmp_path / "schedule.json"
    write_schedule(one_after_the_other(instance), path, instance)
    other = replace(instance, objective=cluster().objective)
    assert read_schedule(path, other).num_segments == 12, "the same work under another objective"
    with pytest.raises(
        FileFormatError, match="a schedule of another instance; that of 'shop' begins"
    ):
        read_schedule(path, INSTANCES["flexible"])


def result(**changes: Any) -> Result:
    values = {
        "instance": "shop",
        "instance_hash": "0" * 64,
        "problem": None,
        "solver": "cpsat",
        "seed": 0,
        "threads": 1,
        "status": "feasible",
        "termination": "time_limit",
        "objective": 10.0,
        "bound": 8.0,
        "gap": 0.2,
        "verified": True,
        "violations": (),
        "metrics": {"makespan": 10.0},
        "bounds": (Bound(8.0, "load", "combinatorial"),),
        "wall_s": 1.5,
        "time_to_first_s": 0.1,
        "peak_memory_mb": 90.0,
        "trajectory": (TrajectoryPoint(0.1, 10.0, None),),
    }
    return Result(**{**values, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"objective": (1.0, 2.0), "bound": (1.0, None), "gap": (0.0, None)},
        {
            "status": "infeasible",
            "objective": None,
            "bound": float("inf"),
            "gap": None,
            "metrics": {},
            "trajectory": (),
        },
        {
            "info": {
                "choice": np.int64(3),
                "sizes": np.arange(2),
                "ratio": np.float64("nan"),
                "where": Path("x"),
            }
        },
    ],
)
def test_results_conform(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_result(result(**changes), path)
    data = json.loads(
        path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON")
    )
    validator("result").validate(data)


def test_result_keys() -> None:
    data = result_to_dict(result(bound=float("-inf")))
    assert list(data)[2:23] == [
        "instance",
        "instance_hash",
        "problem",
        "solver",
        "seed",
        "threads",
        "status",
        "termination",
        "objective",
        "bound",
        "gap",
        "verified",
        "violations",
        "metrics",
        "bounds",
        "wall_s",
        "compile_s",
        "time_to_first_s",
        "peak_memory_mb",
        "trajectory",
        "schedule_file",
    ]
    assert data["bound"] is None
    assert data["bounds"] == [
        {"value": 8.0, "source": "load", "proof": "combinatorial", "level": 0}
    ]
    assert data["trajectory"] == [{"t_s": 0.1, "objective": 10.0, "bound": None, "level": 0}]


def test_schemas_are_schemas_and_refuse() -> None:
    for kind in KINDS:
        jsonschema.Draft202012Validator.check_schema(schema(kind))
    data = instance_to_dict(INSTANCES["cluster"])
    assert not validator("instance").is_valid({**data, "version": 3})
    assert not validator("instance").is_valid({**data, "extra": 1})
    with pytest.raises(UnknownNameError, match="'instanc'; did you mean 'instance'"):
        schema("instanc")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be written: No such file"):
        write_instance(INSTANCES["shop"], tmp_path / "missing" / "x.json")
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(FileFormatError, match="cannot be written: Is a directory"):
        write_instance(INSTANCES["shop"], target)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"], "no temporary file is left"
