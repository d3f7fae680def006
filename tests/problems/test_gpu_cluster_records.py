"""gpu_cluster with recorded work: units by hand, and the report of what is assumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optbench.errors import FileFormatError, ParameterError
from optbench.formats.imported import Import, ImportReport
from optbench.plugins.discovery import load_problem

CLUSTER = "gpu_cluster:nodes=2,profiles=[A100]"
PODS = (
    "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
    "a,1,500,100,260,160\n"  # half a GPU for 100 s: 50 GPU-seconds
    "b,2,1000,300,360,310\n"  # two GPUs for 50 s: 100 GPU-seconds
    "c,0,0,310,360,310\n"  # no GPU
    "d,1,1000,500,520,500\n"  # 20 s
)


def workflow(runtimes: dict[str, float], parents: dict[str, list[str]]) -> dict[str, Any]:
    """Tasks split_1, work_1, ... with one file of 2 GB from each parent to its children."""
    return {
        "name": "by hand",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": [
                    {
                        "name": task,
                        "id": task,
                        "parents": parents.get(task, []),
                        "children": [other for other, all_ in parents.items() if task in all_],
                        "inputFiles": [f"{parent}.out" for parent in parents.get(task, [])],
                        "outputFiles": [f"{task}.out"],
                    }
                    for task in runtimes
                ],
                "files": [{"id": f"{task}.out", "sizeInBytes": 2e9} for task in runtimes],
            },
            "execution": {
                "tasks": [
                    {"id": task, "runtimeInSeconds": run_s, "coreCount": 2}
                    for task, run_s in runtimes.items()
                ]
            },
        },
    }


def imported(spec: str, seed: int = 0) -> Import:
    found = load_problem(spec).imported(seed)
    assert isinstance(found, Import)
    return found


def counts(report: ImportReport, section: str) -> dict[str, int]:
    return {finding.what: finding.count for finding in getattr(report, section)}


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(PODS)
    return path


def test_gpu_seconds_become_units_of_the_reference(pods: Path) -> None:
    # On one A100, which units are seconds of: the GPU-seconds themselves.
    found = imported(f"{CLUSTER},jobs={pods},reference=A100")
    tasks = found.instance.tasks
    assert tasks.units.tolist() == pytest.approx([50.0, 100.0, 20.0])
    # The first arrives at 0; ticks are 0.01 s.
    assert tasks.release.tolist() == [0, 20_000, 40_000]
    assert tasks.names is not None
    assert [name.split(".")[1:] for name in tasks.names] == [["j0", "a"], ["j1", "b"], ["j2", "d"]]
    assert found.report.format == "Alibaba GPU 2023 pods"
    assert found.report.read["rows"] == 4 and found.report.read["tasks"] == 3
    assert counts(found.report, "dropped") == {"asks for no GPU": 1}
    assumed = counts(found.report, "assumed")
    assert assumed["run times are those on one A100-PCIe at its top clock, of training"] == 3
    assert (
        found.instance.hash == load_problem(f"{CLUSTER},jobs={pods},reference=A100").instance().hash
    )


def test_a_slower_reference_makes_less_work(pods: Path) -> None:
    # An instance of V100s has the time per unit on a V100: units times that are the run times.
    instance = imported(f"gpu_cluster:nodes=1,profiles=[V100],cpus=no,jobs={pods}").instance
    top = instance.modes.clock == 1.0
    per_unit = np.zeros(len(instance.modes.kind_names))
    per_unit[instance.modes.kind[top]] = instance.modes.time_per_unit_s[top]
    ran = instance.tasks.units * per_unit[instance.tasks.kind]
    assert ran.tolist() == pytest.approx([50.0, 100.0, 20.0], rel=1e-5)
    assert all(name.startswith("training-") for name in instance.modes.kind_names)


def test_only_the_first_jobs_are_read_and_the_load_scales_their_arrivals(pods: Path) -> None:
    found = imported(f"{CLUSTER},jobs={pods},reference=A100,tasks=2,cpus=no,load=0.5")
    assert counts(found.report, "dropped")["jobs beyond the first 2"] == 1
    # 150 seconds of an A100 on 12 of them are 12.5 s; at a load of 0.5 arrivals span 25 s.
    assert found.instance.tasks.release.tolist() == [0, 2500]


def test_a_gavel_trace_runs_on_a_v100(tmp_path: Path) -> None:
    path = tmp_path / "two.trace"
    row = "ResNet\tcmd\t--steps\t1\t{steps}\t{at}\t{gpus}\n"
    path.write_text(row.format(steps=600, at=0, gpus=1) + row.format(steps=60, at=5, gpus=2))
    rates = {"v100": {"('ResNet', 1)": {"null": 10.0}, "('ResNet', 2)": {"null": 4.0}}}
    (tmp_path / "simulation_throughputs.json").write_text(json.dumps(rates))
    # 600 / 10 = 60 s on one GPU; 60 / 4 = 15 s on two, 30 GPU-seconds.
    found = imported(f"{CLUSTER},jobs={path},reference=A100")
    assert found.instance.tasks.units.tolist() == pytest.approx([60.0, 30.0])
    said = counts(imported(f"{CLUSTER},jobs={path}").report, "assumed")
    assert said["run times are those on one V100-PCIe at its top clock, of training"] == 2


def test_a_workflow_is_one_job_with_its_edges(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    runtimes = {"join": 8.0, "work_1": 4.0, "work_2": 6.0, "split": 0.0}
    parents = {"work_1": ["split"], "work_2": ["split"], "join": ["work_1", "work_2"]}
    path.write_text(json.dumps(workflow(runtimes, parents)))
    found = imported(f"{CLUSTER},jobs={path},reference=A100,deadlines=tight")
    instance = found.instance
    # Kahn's order: split, both works, join.
    assert instance.tasks.names is not None
    assert [name.rsplit(".", 1)[1] for name in instance.tasks.names] == [
        "split", "work_1", "work_2", "join",
    ]  # fmt: skip
    assert instance.tasks.units.tolist() == pytest.approx([0.01, 4.0, 6.0, 8.0])
    ends = instance.edges
    edges = set(zip(ends.source.tolist(), ends.target.tolist(), strict=True))
    assert edges == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert instance.edges.data_gb.tolist() == [2.0] * 4
    # Both tasks of the program "work" have one kind.
    assert instance.tasks.kind[1] == instance.tasks.kind[2]
    # The fastest chain lasts 0.01 + 6 + 8 s on an A100, or less on a socket.
    due = instance.tasks.deadline
    assert np.isfinite(due).tolist() == [False, False, False, True]
    assert due[3] <= 1.5 * 1401
    assert counts(found.report, "dropped")["numbers of cores: a task uses one device"] == 4
    assert counts(found.report, "assumed")["takes no time on record: 0.01 s of an A100"] == 1
    said = imported(f"{CLUSTER},jobs={path},work=analytics").report
    assert (
        counts(said, "assumed")["run times are those on one CPU at its top clock, of analytics"]
        == 4
    )


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("a,b\n1,2\n", "neither a WfFormat workflow"),
        ('{"rows": []}', "this JSON is no WfFormat workflow"),
        (json.dumps(workflow({"a": 1.0, "b": 1.0}, {"a": ["b"], "b": ["a"]})), "have a cycle"),
        (PODS[: PODS.index("a,1")] + "c,0,0,310,360,310\n", "no job is left"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path: Path, text: str, culprit: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=culprit):
        imported(f"{CLUSTER},jobs={path}")


@pytest.mark.parametrize(
    ("setting", "culprit"),
    [
        ("reference=A100", "reference is 'A100'; it must be none without jobs"),
        ("work=matrix", "work is 'matrix'; it must be none without jobs"),
        ("jobs=x.csv,shape=batch", "shape is 'batch'; it must be mixed with jobs"),
        ("jobs=x.csv,load=1,burst=2", r"burst is 2\.0; it must be 1\.0 with jobs"),
    ],
)
def test_parameters_of_made_and_recorded_work_do_not_mix(setting: str, culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        load_problem(f"gpu_cluster:{setting}")


def test_jobs_that_arrive_at_once_have_no_load(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(workflow({"a": 1.0}, {})))
    with pytest.raises(ParameterError, match="none with a record whose jobs arrive at the same"):
        imported(f"{CLUSTER},jobs={path},load=0.5")
