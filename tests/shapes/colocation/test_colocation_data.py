"""Bad input: each error names the entry, the value and what is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError
from optbench.shapes.colocation.colocation_data import GpuType, JobType, Outage
from optbench.shapes.colocation.trace_replay import offered_load
from tests.shapes.colocation.two_gpus import FAST, GANG, HEAVY, LIGHT, SLOW, cluster, tables

JOB = (HEAVY, 0, 1, 50, 0)


def with_cell(table: int, at: tuple[int, ...], value: float) -> dict[str, Any]:
    both = tables()
    both[table][at] = value
    return {("alone_per_s", "beside_per_s")[table]: both[table]}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "negative": (with_cell(0, (SLOW, LIGHT), -2.0), r"alone_per_s\[slow, light\] is -2.0"),
    "nan": (with_cell(1, (FAST, HEAVY, LIGHT), np.nan), r"\[fast, heavy, light\] is nan"),
    "one-sided": (
        with_cell(1, (FAST, LIGHT, HEAVY), 0.0),
        r"\[fast, heavy, light\] is above 0 and",
    ),
    "gang": (
        {"beside_per_s": np.where(np.eye(4)[None] > 0, 1.0, tables()[1])},
        r"\[fast, gang on 2 GPUs, gang on 2 GPUs\] is above 0; jobs of several GPUs run alone",
    ),
    "size": ({"alone_per_s": np.ones((2, 3))}, r"alone_per_s has the size \(2, 3\); it must be"),
    "utilisation": ({"utilisation": np.full((2, 4), 1.5)}, r"utilisation\[fast, heavy\] is 1.5"),
    "horizon": ({"horizon_epochs": 0}, "horizon_epochs is 0: 0 s are over before the last job"),
    "epoch": ({"epoch_s": -1.0}, "epoch_s is -1.0"),
    "restart": ({"restart_s": 500.0}, "restart_s is 500.0; it must be at most an epoch"),
    "outage of nothing": ({"outages": (Outage(0, -5, 0, 1),)}, "gpus is -5; the type has 1"),
    "outage of no time": ({"outages": (Outage(0, 1, 3, 3),)}, "from epoch 3 to before 3"),
    "same name": ({"gpu_types": (cluster([JOB]).gpu_types[0],) * 2}, "one name: fast, fast"),
    "endless": ({"horizon_epochs": 10**9}, "horizon_epochs is 1000000000; at most 1,000,000"),
    "outage": ({"outages": (Outage(7, 1, 0, 1),)}, "gpu_type is 7; there are types 0 to 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_data_are_refused(case: str) -> None:
    changes, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        replace(cluster([JOB]), **changes)


WRONG_JOBS: dict[str, tuple[list[tuple[Any, ...]], str]] = {
    "none": ([], "there are none"),
    "type": ([(9, 0, 1, 50, 0)], "job 0: job_type is 9; there are types 0 to 3"),
    "order": ([(HEAVY, 9, 1, 50, 0), JOB], "must rise"),
    "rate": ([(HEAVY, 0, 0, 50, 0)], "job 0: required_per_s is 0.0; it must be above 0"),
    "both": ([(HEAVY, 0, 1, 50, 20)], "work is 50.0 and stay_s 20.0; exactly one"),
    "negative stay": ([(HEAVY, 0, 1, 50, -5)], "stay_s is -5.0; it must be from 0"),
    "endless work": ([(HEAVY, 0, 1, 1e308, 0)], r"work is 1e\+308; it must be from 0"),
    "many replicas": ([(HEAVY, 0, 1, 50, 0, 10**9)], "replicas is 1000000000"),
    "replicas": ([(HEAVY, 0, 1, 50, 0, 0)], "replicas is 0"),
    "impossible": (
        [JOB, (LIGHT, 0, 4.5, 50, 0)],
        r"job 1 \(light\) requires 4.5 per second; it alone cannot be served: its best GPUs "
        "give it 4",
    ),
    "impossible gang": (
        [(GANG, 0, 3, 50, 0)],
        # The fast type has one GPU and the gang needs two.
        r"job 0 \(gang on 2 GPUs\) requires 3 per second; it alone cannot be served: its best "
        "GPUs give it 2.5",
    ),
}


@pytest.mark.parametrize("case", WRONG_JOBS)
def test_wrong_jobs_are_refused(case: str) -> None:
    jobs, words = WRONG_JOBS[case]
    if not jobs:
        data = cluster([JOB])
        empty = {name: getattr(data.jobs, name)[:0] for name in vars(data.jobs)}
        with pytest.raises(ModelError, match=words):
            replace(data, jobs=replace(data.jobs, **empty))
        return
    with pytest.raises(ModelError, match=words):
        cluster(jobs)


def test_a_job_has_gpus() -> None:
    with pytest.raises(ModelError, match="'x': gpus is 0; it must be above 0"):
        JobType("x", "f", 8.0, 0)


def test_power_rises() -> None:
    with pytest.raises(ModelError, match="sleep_w 40"):
        GpuType("x", 1, 40.0, 30.0, 100.0)


def test_load_is_required_gpu_time_per_gpu() -> None:
    # Heavy: the median of 2 and 1 is 1.5 per second, 150 units take 100 s; the gang's median is
    # 3.75, 75 units take 20 s of two GPUs; 140 GPU-seconds in 200 s on three GPUs.
    data = cluster([(HEAVY, 0, 1, 150, 0), (GANG, 200, 1, 75, 0)])
    assert offered_load(data) == pytest.approx(140 / 200 / 3)
