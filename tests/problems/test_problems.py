"""The built-in problem families: seeded generation, files, and refused parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optbench.errors import FileFormatError, ParameterError
from optbench.model.instance import Instance
from optbench.model.validate import validate
from optbench.model.windows import windows
from optbench.plugins.discovery import load_problem, names

SPECS = (
    "jobshop",
    "jobshop:jobs=3,machines=2,low=5,high=5",
    "flexible_jobshop",
    "flexible_jobshop:jobs=1,machines=1,operations=1,flexibility=1",
    "rcpsp",
    "rcpsp:activities=1,complexity=0",
    "rcpsp:activities=60,complexity=2.1,factor=1,strength=0",
    "gpu_dag",
    "gpu_dag:tasks=1,gpus=1,types=1,clocks=1,deadlines=none",
    "gpu_dag:shape=fork_join,hard=yes,power_cap=0.6",
    "gpu_dag:shape=chains,price=yes",
    "gpu_dag:shape=random,transfers=no,gang=4,gpus=9",
    "gpu_dag:shape=independent,deadlines=tight",
    "gpu_dag:shape=batch,carbon=yes,node_cap=0.7,nodes=2",
    "gpu_dag:shape=pipeline,cpus=2,prepare=either,deadlines=flexible",
    "gpu_dag:shape=data_parallel,cpus=1,pooled=no,hard=yes,sizes=mixed",
    "gpu_dag:profiles=[K40c,C2070],sizes=small,cpus=2",
    "gpu_dag:within=1.5,deadlines=none",
    "gpu_cluster",
    "gpu_cluster:nodes=1,tasks=1,types=1,clocks=1,cpus=no,deadlines=none,makespan_share=0",
    "gpu_cluster:nodes=5,tasks=40,gang=4,shape=data_parallel,scale=minutes,load=0.8,burst=3",
    "gpu_cluster:nodes=3,profiles=[K40c,C2070],gpus=2,users=1,load=0.5,load_of=capacity",
    "night_batch",
    "night_batch:a100=1,l4=2,power_w=600,hours=12",
    "geo_dc:days=0.05",
    "geo_dc:jobs=9,drain=yes,only=[us-west,us-east],tick_s=60",
)
# Families whose instances are no task schedules, with files of their own here.
OF_OTHER_SHAPES = ("colocation", "epoch_allocation", "gnn_training")


def make(spec: str, seed: int = 0) -> Instance:
    made: Instance = load_problem(spec).instance(seed)
    return made


def test_every_built_in_family_is_tested_here() -> None:
    schedules = {spec.partition(":")[0] for spec in SPECS}
    assert set(names("problem")) == schedules | set(OF_OTHER_SHAPES)


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_seed_gives_the_same_valid_instance(spec: str) -> None:
    instance = make(spec, 3)
    assert validate(instance) is instance
    assert instance.hash == make(spec, 3).hash
    assert instance.problem == spec.partition(":")[0]
    assert instance.tick_s == {
        "geo_dc:days=0.05": 1e-9,
        "geo_dc:jobs=9,drain=yes,only=[us-west,us-east],tick_s=60": 60.0,
    }.get(spec, instance.tick_s)


@pytest.mark.parametrize(
    "spec",
    [
        "jobshop",
        "flexible_jobshop",
        "rcpsp",
        "gpu_dag",
        "gpu_dag:shape=independent",
        "gpu_cluster",
        "gpu_cluster:load=0.8",
    ],
)
def test_seeds_differ(spec: str) -> None:
    assert len({make(spec, seed).hash for seed in range(8)}) == 8


def test_a_job_shop_visits_every_machine_once() -> None:
    instance = make("jobshop:jobs=4,machines=3,low=2,high=6")
    machines = instance.modes.primary[instance.pairs.mode].reshape(4, 3)
    assert all(sorted(row) == [0, 1, 2] for row in machines.tolist())
    assert instance.pairs.duration.min() >= 2
    assert instance.pairs.duration.max() <= 6
    assert instance.edges.source.tolist() == [0, 1, 3, 4, 6, 7, 9, 10]


def test_flexibility_is_the_mean_number_of_alternatives() -> None:
    instance = make("flexible_jobshop:jobs=100,machines=8,operations=5,flexibility=3")
    # 500 draws of 1 + Binomial(7, 2/7), variance 10/7: the mean's standard error is 0.053.
    assert len(instance.pairs.task) / instance.num_tasks == pytest.approx(3.0, abs=0.2)


def test_a_generated_project_has_the_complexity_and_resources_it_was_asked_for() -> None:
    instance = make("rcpsp:activities=40,resources=3,complexity=1.8,factor=0.5,strength=1")
    n = instance.num_tasks
    source, target = instance.edges.source, instance.edges.target
    assert len(source) == round(1.8 * 42)
    # factor: 60 of 120 (activity, resource) pairs have a demand.
    assert len(instance.modes.req_pool[: instance.modes.req_ptr[-1]]) >= 1
    demands = sum(int(np.diff(instance.modes.req_ptr)[instance.pairs.mode[i]]) for i in range(n))
    assert demands == 60
    # No arc is implied by the others.
    reach = np.zeros((n, n), dtype=bool)
    reach[source, target] = True
    longer = reach.copy()
    for _ in range(n):
        longer |= longer @ reach
    assert not ((reach.astype(int) @ longer.astype(int))[source, target] > 0).any()
    # strength 1: every activity may start as early as precedence allows, so the critical path is
    # the optimum.
    start = windows(instance).head
    for p, room in enumerate(instance.pools.count.tolist()):
        for t in range(int(start.max()) + 1):
            running = [i for i in range(n) if start[i] <= t < start[i] + instance.pairs.duration[i]]
            needs = sum(_demand(instance, i, p) for i in running)
            assert needs <= room


def _demand(instance: Instance, task: int, pool: int) -> int:
    mode = int(instance.pairs.mode[task])
    rows = slice(int(instance.modes.req_ptr[mode]), int(instance.modes.req_ptr[mode + 1]))
    return int(instance.modes.req_count[rows][instance.modes.req_pool[rows] == pool].sum())


@pytest.mark.parametrize(
    ("spec", "culprit"),
    [
        ("jobshop:jobs=0", "jobs is 0; it must be at least 1"),
        ("jobshop:low=9,high=3", "high is 3; it must be at least low, which is 9"),
        (
            "flexible_jobshop:machines=3,flexibility=4",
            "flexibility is 4.0; it must be from 1 to machines, which is 3",
        ),
        ("flexible_jobshop:spread=1", "spread is 1.0"),
        ("rcpsp:factor=1.5", "factor is 1.5; it must be from 0 to 1"),
        ("rcpsp:activities=5,complexity=8", "complexity is 8.0; networks of 5 activities"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value(spec: str, culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        make(spec)


def test_a_file_is_read_and_must_be_of_the_family(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text("2 2\n0 3 1 2\n1 4 0 1\n")
    assert make(f"jobshop:file={path}").pairs.duration.tolist() == [3, 2, 4, 1]
    with pytest.raises(
        FileFormatError, match="holds a jobshop instance, not a rcpsp; use jobshop:file="
    ):
        make(f"rcpsp:file={path}")
    with pytest.raises(ParameterError, match="jobs=3 is for generated instances"):
        make(f"jobshop:file={path},jobs=3")


@pytest.mark.parametrize(
    "spec",
    [
        "jobshop:file=jobshop/ft06",
        "rcpsp:file=rcpsp/j30/j30_1_1",
        "flexible_jobshop:file=flexible-jobshop/mk01",
    ],
)
def test_a_public_instance_by_name(spec: str, data_dir: Path) -> None:
    assert make(spec).num_tasks == {"ft06": 36, "j30_1_1": 32, "mk01": 55}[spec.rpartition("/")[2]]
