"""gpu_dag: patterns of work, and hardware pooled and device by device."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.plugins.problems._shapes import data_parallel, pipeline
from tests.problems.gpu_graphs import make, on_cpu, optimum

# --- hardware ---


def test_a_gpu_graph_offers_pools_counts_and_clocks() -> None:
    instance = make("gpu_dag:tasks=30,gpus=5,types=2,clocks=3,gang=2")
    assert instance.pools.count.tolist() == [3, 2]
    # Two pools, one or two GPUs, three clocks.
    assert np.diff(instance.modes.kind_ptr).tolist() == [12] * len(instance.modes.kind_names)
    assert instance.modes.devices.max() == 2
    # Tasks of 40 GB fit no L4 (24 GB): six modes are left.
    big = np.flatnonzero(instance.tasks.memory_gb == 40.0)
    assert len(big) > 0
    assert np.diff(instance.pairs.ptr)[big].tolist() == [6] * len(big)


def test_energies_and_powers_of_a_gpu_graph_scale_to_integers() -> None:
    modes = make("gpu_dag").modes
    for column in (modes.energy_per_unit_j, modes.power_w):
        assert np.abs(column * 1e3 - np.rint(column * 1e3)).max() < 1e-6


def test_options_of_a_gpu_graph_show_in_its_features() -> None:
    assert "transfers" in make("gpu_dag").features
    assert "transfers" not in make("gpu_dag:transfers=no").features
    assert "tariffs" in make("gpu_dag:price=yes").features
    assert "power_cap" in make("gpu_dag:power_cap=0.5").features
    assert "deadlines" in make("gpu_dag:hard=yes").features
    assert "due_dates" in make("gpu_dag").features
    assert "due_dates" not in make("gpu_dag:deadlines=none").features


def test_a_tight_deadline_is_half_a_loose_one() -> None:
    # Only the slack differs: 1.5 against 3 times the earliest end, each rounded up.
    loose, tight = (make(f"gpu_dag:deadlines={word}").tasks.deadline for word in ("loose", "tight"))
    due = np.isfinite(loose)
    assert due.any()
    assert (np.abs(loose[due] - 2 * tight[due]) <= 1).all()


def test_nodes_and_sockets_are_dealt_out_in_turn() -> None:
    # 11 GPUs: 6 of the first type, 5 of the second; on two nodes each 3 + 3 and 3 + 2. Five sockets
    # over four nodes.
    instance = make("gpu_dag:gpus=11,types=2,nodes=2,cpus=5")
    count = dict(zip(instance.pools.names, instance.pools.count.tolist(), strict=True))
    assert count == {
        "a100-pcie-0": 3, "cpu-a100-pcie-0": 2, "a100-pcie-1": 3, "cpu-a100-pcie-1": 1,
        "l4-0": 3, "cpu-l4-0": 1, "l4-1": 2, "cpu-l4-1": 1,
    }  # fmt: skip
    assert instance.places.names == (
        "cluster",
        "node-a100-pcie-0",
        "node-a100-pcie-1",
        "node-l4-0",
        "node-l4-1",
    )


def test_named_profiles_take_the_place_of_the_types() -> None:
    assert make("gpu_dag:profiles=[H200,K40c],gpus=3").pools.names == ("h200", "k40c")
    assert make("gpu_dag:profiles=[H200,K40c],gpus=3").pools.count.tolist() == [2, 1]


def test_device_by_device_each_gpu_is_a_pool_and_links_inside_a_node_are_faster() -> None:
    instance = make("gpu_dag:gpus=5,types=2,pooled=no,gang=2,clocks=2")
    assert instance.pools.count.tolist() == [1] * 5
    assert "pooled" not in instance.features
    # 3 + 2 GPUs: alone 5 ways, in pairs of one node 3 + 1 ways, at two clocks.
    assert np.diff(instance.modes.kind_ptr).tolist() == [18, 18]
    node = instance.pools.place
    inside = (node[:, None] == node) & ~np.eye(5, dtype=bool)
    between = node[:, None] != node
    # 252 Gbit/s are 8 / 252 s per GB, 10 Gbit/s 0.8 s per GB.
    assert np.unique(instance.links.s_per_gb[inside]).tolist() == [8 / 252]
    assert np.unique(instance.links.s_per_gb[between]).tolist() == [0.8]


FORMS = (
    "gpu_dag:tasks=4,gpus=3,types=1,clocks=2,transfers=no",
    "gpu_dag:tasks=5,gpus=4,types=1,clocks=2,gang=4,transfers=no,shape=batch",
    "gpu_dag:tasks=4,gpus=4,types=1,nodes=2,clocks=2,transfers=no,shape=data_parallel,replicas=2,cpus=2,deadlines=tight",
    "gpu_dag:tasks=4,gpus=4,types=2,clocks=2,transfers=no,shape=pipeline,node_cap=0.7,power_cap=0.6,cpus=1,prepare=either",
)


@pytest.mark.parametrize("spec", FORMS)
@pytest.mark.parametrize("seed", range(2))
def test_without_transfers_both_forms_have_the_same_optimum(spec: str, seed: int) -> None:
    pooled, single = make(spec, seed), make(f"{spec},pooled=no", seed)
    assert pooled.tasks.deadline.tolist() == single.tasks.deadline.tolist()
    assert single.pools.count.max() == 1 < pooled.pools.count.max()
    assert optimum(single) == pytest.approx(optimum(pooled), rel=1e-9)


def test_with_transfers_device_by_device_is_never_cheaper() -> None:
    # Data within a pool move for free, so that the pooled form relaxes the other one.
    spec = (
        "gpu_dag:tasks=4,gpus=3,types=1,clocks=1,gang=1,shape=data_parallel,replicas=2,iterations=1"
    )
    assert optimum(make(f"{spec},pooled=no")) > optimum(make(spec))


@pytest.mark.parametrize(
    "options", ["", ",pooled=no,gang=1", ",nodes=60,cpus=180,power_cap=0.7,node_cap=0.8"]
)
def test_a_cluster_of_1500_gpus_stays_small(options: str) -> None:
    instance = make(f"gpu_dag:tasks=5000,gpus=1500{options}")
    gpus = [name for name in instance.pools.names if not name.startswith("cpu")]
    assert instance.num_tasks == 5000
    assert sum(instance.pools.count[instance.pools.names.index(name)] for name in gpus) == 1500
    # A mode per pool, GPU count (two at most) and clock, for each of three kinds of work at most.
    assert instance.num_modes <= 3 * 2 * 5 * instance.num_pools
    assert "pairs" not in vars(instance), (
        "5,000 tasks x 7,500 modes must not be written out to build the instance"
    )


@pytest.mark.parametrize(
    ("spec", "seed", "begin"),
    [
        ("gpu_dag", 0, "a9ae83f399be1174"),
        ("gpu_dag:tasks=300", 0, "c75c1390194a145d"),
        ("gpu_dag:shape=fork_join,hard=yes,power_cap=0.6", 1, "86baaae38ecf8703"),
        ("gpu_dag:shape=random,transfers=no,gang=4,gpus=9", 2, "807ccb820d8748e5"),
    ],
)
def test_instances_that_results_refer_to_stay_what_they_are(
    spec: str, seed: int, begin: str
) -> None:
    # Pages under docs/results name these by spec and seed: a change of the generator must not
    # change them unnoticed.
    assert make(spec, seed).hash.startswith(begin)


# --- work ---


def test_a_batch_is_jobs_alone() -> None:
    instance = make("gpu_dag:shape=batch,tasks=30")
    assert len(instance.edges.source) == 0
    assert "transfers" not in instance.features
    assert np.isfinite(instance.tasks.deadline).all()


def test_a_pipeline_repeats_its_stages() -> None:
    # Jobs of three stages, the last one cut: 0-1-2, 3-4-5, 6-7.
    graph = pipeline(8, 3)
    assert graph.edges == [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)]
    assert graph.roles == [
        "prepare",
        "train",
        "infer",
        "prepare",
        "train",
        "infer",
        "prepare",
        "train",
    ]
    assert pipeline(4, 2).roles == ["prepare", "train"] * 2
    instance = make("gpu_dag:shape=pipeline,tasks=8,stages=3")
    kind = instance.tasks.kind.tolist()
    assert kind[:3] == kind[3:6] and kind[6:] == kind[:2]
    assert len(set(kind[:3])) == 3


def test_data_parallel_jobs_fork_and_reduce_in_every_iteration() -> None:
    # One job of two iterations with three replicas: 0 | 1 2 3 | 4 | 5 6 7 | 8; then 9 | 10 11 | 12,
    # cut to 13 tasks.
    graph = data_parallel(13, 3, 2)
    fork_1, join_1 = [(0, 1), (0, 2), (0, 3)], [(1, 4), (2, 4), (3, 4)]
    fork_2, join_2 = [(4, 5), (4, 6), (4, 7)], [(5, 8), (6, 8), (7, 8)]
    assert graph.edges == [*fork_1, *join_1, *fork_2, *join_2, (9, 10), (9, 11), (10, 12), (11, 12)]
    train = ["train"] * 3
    assert graph.roles == [
        "prepare",
        *train,
        "reduce",
        *train,
        "reduce",
        "prepare",
        "train",
        "train",
        "reduce",
    ]
    assert graph.teams == [0, 1, 1, 1, 4, 5, 5, 5, 8, 9, 10, 10, 12]
    assert graph.bundles == [0] * 3 + [3] * 3 + [6] * 3 + [9] * 3 + [12] * 2 + [14] * 2


@pytest.mark.parametrize("tasks", range(1, 25))
def test_a_data_parallel_graph_has_as_many_tasks_as_asked_for(tasks: int) -> None:
    graph = data_parallel(tasks, 4, 3)
    assert len(graph.roles) == len(graph.teams) == tasks
    for task, role in enumerate(graph.roles):
        before = [graph.roles[i] for i, j in graph.edges if j == task]
        assert before == {"prepare": [], "reduce": ["train"] * len(before)}.get(role, before)
        assert len(before) == 1 or role != "train"


def test_replicas_are_equal_and_exchange_equal_volumes() -> None:
    instance = make("gpu_dag:shape=data_parallel,tasks=40,replicas=4")
    graph = data_parallel(40, 4, 3)
    for column in (instance.tasks.units, instance.tasks.memory_gb, instance.tasks.kind):
        assert all(column[i] == column[team] for i, team in enumerate(graph.teams))
    data = instance.edges.data_gb
    assert all(data[e] == data[bundle] > 0 for e, bundle in enumerate(graph.bundles))
    assert len(set(instance.tasks.units.tolist())) > 10


@pytest.mark.parametrize("shape", ["layered", "batch", "pipeline", "data_parallel"])
@pytest.mark.parametrize("prepare", ["cpu", "either"])
def test_preparation_runs_on_cpus_or_on_either_and_nothing_else_does(
    shape: str, prepare: str
) -> None:
    instance = make(f"gpu_dag:tasks=40,cpus=3,shape={shape},prepare={prepare}")
    cpu = on_cpu(instance)
    by_kind = [
        set(cpu[rows].tolist())
        for rows in np.split(np.arange(len(cpu)), instance.modes.kind_ptr[1:-1])
    ]
    assert by_kind.count({False}) >= 2
    assert by_kind.count({True} if prepare == "cpu" else {True, False}) == 1
    assert len(by_kind) == by_kind.count({False}) + 1
    preparing = [i for i, kind in enumerate(instance.tasks.kind.tolist()) if True in by_kind[kind]]
    assert preparing
    # What prepares data waits for nothing.
    assert not set(preparing) & set(instance.edges.target.tolist())


def test_without_cpus_there_are_none_and_gpus_prepare() -> None:
    assert not on_cpu(make("gpu_dag:shape=pipeline")).any()


def test_small_problems_run_as_fast_on_any_gpu_and_large_ones_do_not() -> None:
    # Full, one H100 trains 14 times as fast as one T4. Of 0.1 GFLOP neither is full: times differ
    # by less than a third.
    ratio = {}
    for sizes in ("small", "large"):
        instance = make(f"gpu_dag:profiles=[H100,T4],gpus=2,sizes={sizes},clocks=1")
        times = instance.modes.time_per_unit_s.reshape(-1, 2)
        ratio[sizes] = (times[:, 1] / times[:, 0]).tolist()
    assert all(2 / 3 < each < 4 / 3 for each in ratio["small"])
    assert all(each > 4 for each in ratio["large"])


def test_mixed_sizes_are_kinds_of_their_own() -> None:
    # Training and inference, small, medium and large.
    assert len(make("gpu_dag:sizes=mixed,tasks=200").modes.kind_names) == 6


def test_of_any_size_a_task_is_10_to_60_s_of_an_a100() -> None:
    instance = make("gpu_dag:profiles=[A100],gpus=1,clocks=1,gang=1,sizes=mixed,tasks=100")
    # Units are whole, and one of a small training problem takes 0.043 * 94.6 = 4.1 s: half of it
    # more or less, and a tick.
    assert instance.pairs.duration.min() >= 10 - 3
    assert instance.pairs.duration.max() <= 60 + 4
