"""All published instances load, and what is recomputed from them is what their tables say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optbench.formats.format_registry import detect, load, parse
from optbench.model.instance import Instance
from optbench.model.windows import windows
from tests.sample_files.inputs import written

SETS = {"jobshop": ("jobshop", 42), "flexible-jobshop": ("fjsp", 44), "rcpsp": ("rcp", 85)}


def table(data_dir: Path, name: str) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads((data_dir / name / "bounds.json").read_text())
    assert len(rows) == SETS[name][1]
    return rows


def resource_bound(instance: Instance) -> int:
    """Largest ceil(work / capacity) over the pools, for one mode per task."""
    work = np.zeros(instance.num_pools)
    modes = instance.modes
    for mode, duration in zip(instance.pairs.mode, instance.pairs.duration, strict=True):
        needs = slice(modes.req_ptr[mode], modes.req_ptr[mode + 1])
        work[modes.req_pool[needs]] += modes.req_count[needs] * duration
    return int(np.ceil(work / instance.pools.count).max())


def test_job_shops(data_dir: Path) -> None:
    for name, row in table(data_dir, "jobshop").items():
        instance = load(data_dir / "jobshop" / row["file"])
        assert (instance.name, instance.problem, instance.objective.label) == (
            name,
            "jobshop",
            "makespan",
        )
        assert (instance.num_pools, instance.num_tasks) == (row["machines"], row["operations"])
        assert instance.num_tasks - len(instance.edges.source) == row["jobs"], "one chain per job"
        assert max(windows(instance).critical_path, resource_bound(instance)) <= row["lower_bound"]


def test_flexible_job_shops(data_dir: Path) -> None:
    for name, row in table(data_dir, "flexible-jobshop").items():
        instance = load(data_dir / "flexible-jobshop" / row["file"])
        assert (instance.name, instance.problem) == (name, "flexible_jobshop")
        assert (instance.num_pools, instance.num_tasks) == (row["machines"], row["operations"]), (
            "unused machines are kept"
        )
        assert instance.num_tasks - len(instance.edges.source) == row["jobs"]
        assert len(np.unique(instance.modes.req_pool)) == row["machines_used"]
        assert len(instance.pairs.mode) / instance.num_tasks == pytest.approx(
            row["average_flexibility"], abs=1e-4
        )
        assert windows(instance).critical_path <= row["lower_bound"]


def test_projects(data_dir: Path) -> None:
    for name, row in table(data_dir, "rcpsp").items():
        instance = load(data_dir / "rcpsp" / row["file"])
        assert (instance.name, instance.problem) == (name, "rcpsp")
        assert (instance.num_tasks, instance.num_pools) == (row["activities"], row["resources"])
        assert windows(instance).critical_path == row["critical_path"]
        assert resource_bound(instance) == row["resource_bound"]


@pytest.mark.parametrize("name", SETS)
def test_each_is_in_one_format_only_and_survives_writing(name: str, data_dir: Path) -> None:
    expected = SETS[name][0]
    for instance_name, row in table(data_dir, name).items():
        text = (data_dir / name / row["file"]).read_text()
        assert detect(text) == expected, instance_name
        instance = parse(text, instance_name)
        for target in {expected, "optbench", "psplib" if name == "rcpsp" else "fjsp"}:
            again = parse(written(instance, target), instance_name)
            assert again.hash == instance.hash, (instance_name, target)


def test_ft06_operation_by_operation(data_dir: Path) -> None:
    """First line: 2 1  0 3  1 6  3 7  5 3  4 6."""
    instance = load(data_dir / "jobshop" / "ft06.txt")
    modes = instance.pairs.mode[instance.pairs.ptr[:6]]
    assert instance.modes.primary[modes].tolist() == [2, 0, 1, 3, 5, 4]
    assert instance.pairs.duration[instance.pairs.ptr[:6]].tolist() == [1, 3, 6, 7, 3, 6]
    assert [instance.tasks.name(i) for i in (0, 5, 6)] == ["j0.0", "j0.5", "j1.0"]
    assert instance.edges.source[:6].tolist() == [0, 1, 2, 3, 4, 6]
