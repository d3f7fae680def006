"""gpu_cluster: nodes, links, kinds, jobs, due dates and arrivals, by numbers derived by hand."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.errors import ParameterError
from optbench.model.instance import Instance, Modes
from optbench.model.windows import windows
from optbench.plugins.problems._cluster_hardware import hardware
from optbench.plugins.problems._cluster_jobs import draw_arrivals
from optbench.plugins.problems._cluster_kinds import CATEGORIES, ClusterKind, mode_table_of
from optbench.plugins.problems._cluster_load import TaskColumns, seconds_of_work
from optbench.power.profiles import profile
from tests.problems.gpu_graphs import make, on_cpu

SMALL = "gpu_cluster:nodes=4,tasks=60,types=2"


def gpu_pools(instance: Instance) -> np.ndarray:
    return np.array([not name.startswith("cpu") for name in instance.pools.names])


# --- hardware ---


def test_types_and_numbers_of_gpus_are_dealt_out_in_turn() -> None:
    # Six nodes of two types: each round of two nodes has 8 and 4, then 4 and 8, then 8 and 4.
    instance = make("gpu_cluster:nodes=6,tasks=20,types=2,nodes_per_rack=4")
    assert dict(zip(instance.pools.names, instance.pools.count.tolist(), strict=True)) == {
        "h100-sxm-0": 8, "cpu-0": 2, "a100-pcie-1": 4, "cpu-1": 2,
        "h100-sxm-2": 4, "cpu-2": 2, "a100-pcie-3": 8, "cpu-3": 2,
        "h100-sxm-4": 8, "cpu-4": 2, "a100-pcie-5": 4, "cpu-5": 2,
    }  # fmt: skip
    places = instance.places
    assert places.names[:3] == ("cluster", "rack-0", "rack-1")
    above = [places.names[p] for p in places.parent[3:].tolist()]
    assert above == ["rack-0"] * 4 + ["rack-1"] * 2
    assert [places.names[p] for p in instance.pools.place[:3].tolist()] == [
        "node-0", "node-0", "node-1",
    ]  # fmt: skip


@pytest.mark.parametrize(("nodes", "gpus"), [(256, 1536), (16, 96), (10, 60), (1, 8), (7, 40)])
def test_an_even_number_of_nodes_has_six_gpus_each_on_average(nodes: int, gpus: int) -> None:
    # Seven nodes of six types: 8 4 8 4 8 4 in the first round, and the second begins with 4.
    instance = make(f"gpu_cluster:nodes={nodes},tasks=20")
    assert int(instance.pools.count[gpu_pools(instance)].sum()) == gpus
    assert instance.num_pools == 2 * nodes


def test_links_are_those_of_the_node_of_the_rack_and_between_racks() -> None:
    links = make("gpu_cluster:nodes=4,tasks=20,nodes_per_rack=2").links
    # Pools 0 and 1 are node 0, pool 2 is node 1 of the same rack, pool 4 is in the other rack.
    assert links.latency_s[0, [0, 1, 2, 4]] == pytest.approx([0.0, 1e-5, 2e-5, 6e-5])
    # 8 bits per byte: 252, 100 and 25 Gbit/s.
    assert links.s_per_gb[0, [0, 1, 2, 4]].tolist() == [0.0, 8 / 252, 0.08, 0.32]
    assert links.j_per_gb[0, [0, 1, 2, 4]].tolist() == [0.0, 1.0, 10.0, 30.0]
    for matrix in (links.latency_s, links.s_per_gb, links.j_per_gb):
        assert (matrix == matrix.T).all()


def test_without_cpus_a_node_is_one_pool() -> None:
    instance = make("gpu_cluster:nodes=4,tasks=20,cpus=no")
    assert instance.pools.count.tolist() == [8, 4, 8, 4]
    assert not on_cpu(instance).any()


def test_sleeping_devices_draw_less() -> None:
    idle, asleep = make(SMALL).pools, make(f"{SMALL},sleeps=yes").pools
    assert idle.rest_w.tolist() == idle.idle_w.tolist()
    assert asleep.rest_w.tolist() == idle.sleep_w.tolist()


# --- kinds ---


def modes_on(types: tuple[str, ...], clocks: int, *kinds: ClusterKind) -> Modes:
    """Modes of these kinds on a node of each type, without sockets."""
    shapes = tuple(profile(name) for name in types)
    cluster = hardware(shapes, len(types), 8, 8, cpus=False, sleeps=False)
    modes: Modes = mode_table_of(cluster, kinds, clocks, 1)
    return modes


def test_modes_are_pools_by_clocks() -> None:
    modes = make("gpu_cluster:nodes=4,tasks=200,types=2,clocks=4").modes
    # Four GPU pools at four clocks; where sockets may work, four of them at two clocks more.
    size = dict(zip(modes.kind_names, np.diff(modes.kind_ptr).tolist(), strict=True))
    assert len(size) <= 68  # four categories, 17 dimensions
    for name, rows in size.items():
        category, dimension = name.split("-")
        largest = {"training": 400, "inference": 900, "matrix": 900, "analytics": 1800}[category]
        assert rows == (24 if int(dimension) <= largest else 16)
    assert set(modes.clock[modes.req_pool == 0].tolist()) == {1.0, 0.8, 0.5, 0.3}
    assert set(modes.clock[modes.req_pool == 1].tolist()) == {1.0, 0.3}
    assert set(modes.req_count.tolist()) == {1}


def test_gangs_are_of_training_and_matrix_kernels_on_one_node() -> None:
    instance = make("gpu_cluster:nodes=2,tasks=300,types=1,gpus=4,gang=4,clocks=1")
    modes = instance.modes
    # Nodes have 4 and 2 GPUs: 1, 2 or 4 of the first, 1 or 2 of the second; sockets one by one.
    for q, name in enumerate(modes.kind_names):
        rows = np.arange(modes.kind_ptr[q], modes.kind_ptr[q + 1])
        used = [
            (int(modes.req_pool[r]), int(modes.req_count[r]))
            for r in rows
            if not modes.req_pool[r] % 2
        ]
        ganged = name.split("-")[0] in ("training", "matrix")
        assert used == ([(0, 1), (0, 2), (0, 4), (2, 1), (2, 2)] if ganged else [(0, 1), (2, 1)])
    assert (modes.req_count[on_cpu(instance)] == 1).all()


def test_a_unit_is_a_second_of_an_a100() -> None:
    kinds = [ClusterKind(category, 1000) for category in CATEGORIES]
    modes = modes_on(("A100",), 1, *kinds)
    assert modes.time_per_unit_s.tolist() == [1.0] * 4
    # Training of d = 1,000 on the A100-PCIe: s = 2 GFLOP; alpha_t = 0.005 and beta_t = 0.038 make
    # c = 38/43, and 9.36 c = 8.27163 GFLOP is the half size: u = 2 / 10.27163 = 0.194711. Power
    # 0.194711 (77.09 + 71.16) + 106.74 = 135.606 W, which is the energy of a second too.
    assert modes.kind_names[0] == "training-1000"
    assert modes.power_w[0] == pytest.approx(135.606, abs=1e-3)
    assert modes.energy_per_unit_j[0] == pytest.approx(135.606, abs=1e-3)


def test_kinds_go_from_bound_by_memory_to_bound_by_computing() -> None:
    categories = ("analytics", "inference", "matrix", "training")
    modes = modes_on(("H100",), 8, *(ClusterKind(category, 1000) for category in categories))
    # Time at half the clock over that at the top clock.
    half, top = (modes.time_per_unit_s[modes.clock == clock] for clock in (0.5, 1.0))
    slower = (half / top).tolist()
    assert slower == sorted(slower)
    assert slower[0] < 1.02 and slower[-1] > 1.7


def test_small_problems_are_cheaper_on_small_gpus_and_large_ones_on_fast_gpus() -> None:
    types = ("H100", "A100", "L4", "V100", "K40c", "C2070")
    modes = modes_on(types, 1, ClusterKind("matrix", 200), ClusterKind("matrix", 1800))
    (small_s, large_s), (small_j, _) = (
        column.reshape(2, 6) for column in (modes.time_per_unit_s, modes.energy_per_unit_j)
    )
    assert types[int(large_s.argmin())] == "H100"
    assert types[int(small_j.argmin())] == "L4"
    # A K40c takes about as long as an H100 where launches bind. Where the peak does, 989.4 TFLOPS
    # that are filled to about a third stand against 4.29.
    assert small_s[4] / small_s[0] < 1.2
    assert 50 < large_s[4] / large_s[0] < 100


# --- jobs ---


@pytest.mark.parametrize("shape", ["batch", "pipeline", "data_parallel"])
def test_graphs_of_jobs_have_their_shape(shape: str) -> None:
    instance = make(f"gpu_cluster:nodes=4,tasks=200,shape={shape}")
    names = instance.tasks.names
    assert names is not None
    job = np.array([int(name.split(".")[1][1:]) for name in names])
    edges = instance.edges
    assert (job[edges.source] == job[edges.target]).all()
    assert (edges.source < edges.target).all()
    assert (edges.data_gb * 4 == np.rint(edges.data_gb * 4)).all()
    before = np.bincount(edges.target, minlength=200)
    after = np.bincount(edges.source, minlength=200)
    for j in range(int(job.max())):  # the last job is cut
        here = job == j
        assert [before[here].tolist().count(0), after[here].tolist().count(0)] == [1, 1]
        widest = int(after[here].max())
        rounds = int((after[here] > 1).sum())
        if shape == "pipeline":
            assert widest == 1 and 3 <= here.sum() <= 6
        elif shape == "batch":
            assert 3 <= widest <= 12 and here.sum() == widest + 2
        else:
            assert 2 <= widest <= 8 and 2 <= rounds <= 4 and here.sum() == 1 + rounds * (widest + 1)
            replicas = instance.tasks.units[here][1 : 1 + widest]
            assert len(set(replicas.tolist())) == 1


def test_tasks_take_seconds_or_minutes_on_the_reference() -> None:
    for scale, low, high in (("seconds", 2.0, 30.0), ("minutes", 60.0, 600.0)):
        tasks = make(f"gpu_cluster:nodes=4,tasks=300,scale={scale}").tasks
        assert tasks.names is not None
        small = np.array(["prepare" in name or "reduce" in name for name in tasks.names])
        assert low <= tasks.units[~small].min() and tasks.units[~small].max() <= high
        # Preparations and reductions take 10 to 40 %.
        assert tasks.units[small].min() >= 0.1 * low and tasks.units[small].max() <= 0.4 * high


def test_all_users_have_jobs_and_jobs_a_priority() -> None:
    tasks = make("gpu_cluster:nodes=4,tasks=500,users=3").tasks
    assert tasks.names is not None
    assert {name.split(".")[0] for name in tasks.names} == {"u0", "u1", "u2"}
    assert set(tasks.weight.tolist()) == {1.0, 2.0, 4.0}


def test_more_load_or_bursts_do_not_change_the_work() -> None:
    calm, busy = make(f"{SMALL},load=0.4"), make(f"{SMALL},load=0.8,burst=5")
    assert calm.tasks.units.tolist() == busy.tasks.units.tolist()
    assert calm.edges.data_gb.tolist() == busy.edges.data_gb.tolist()


# --- objective and due dates ---


def test_the_price_of_a_second_is_half_of_the_idle_power() -> None:
    # 8 H100 at 55 W, 4 A100 at 45 W, two times two sockets at 65 W: 880 W.
    instance = make("gpu_cluster:nodes=2,tasks=20,types=2")
    assert dict(instance.objective.levels[0]) == {
        "energy_j": 1.0, "makespan_s": 440.0, "tardiness_s": 500.0,
    }  # fmt: skip
    plain = make("gpu_cluster:nodes=2,tasks=20,types=2,makespan_share=0,deadlines=none")
    assert dict(plain.objective.levels[0]) == {"energy_j": 1.0}


@pytest.mark.parametrize(("deadlines", "slack"), [("flexible", 6.0), ("tight", 1.5)])
def test_due_dates_are_multiples_of_the_earliest_end(deadlines: str, slack: float) -> None:
    instance = make(f"{SMALL},deadlines={deadlines},shape=pipeline,load=0.5")
    due = np.flatnonzero(np.isfinite(instance.tasks.deadline))
    last = np.setdiff1d(np.arange(60), instance.edges.source)
    assert due.tolist() == last.tolist()
    assert not instance.tasks.deadline_hard.any()
    bounds = windows(instance)
    ends = (bounds.head + bounds.shortest - instance.tasks.release)[due]
    given = (instance.tasks.deadline - instance.tasks.release)[due]
    # The chain's durations are rounded up to ticks, up to six of them, and releases and due dates
    # once each.
    assert (given <= slack * ends + 1).all()
    assert (given >= slack * (ends - 6) - 2).all()


def test_mixed_due_dates_are_tight_for_some_jobs_only() -> None:
    spec = "gpu_cluster:nodes=4,tasks=200,deadlines"
    mixed, tight, flexible = (
        make(f"{spec}={word}").tasks.deadline for word in ("mixed", "tight", "flexible")
    )
    due = np.isfinite(mixed)
    is_tight, is_flexible = mixed[due] == tight[due], mixed[due] == flexible[due]
    assert (is_tight ^ is_flexible).all()
    assert is_tight.any() and is_flexible.any()


# --- arrivals ---


def test_tasks_of_a_job_arrive_together() -> None:
    tasks = make(f"{SMALL},load=0.5").tasks
    assert tasks.names is not None
    first: dict[str, int] = {}
    for name, release in zip(tasks.names, tasks.release.tolist(), strict=True):
        assert first.setdefault(name.split(".")[1], release) == release
    assert list(first.values()) == sorted(first.values())


def columns_of(instance: Instance) -> TaskColumns:
    return TaskColumns(instance.tasks.kind, instance.tasks.units, instance.tasks.memory_gb)


def test_least_work_is_device_seconds_over_devices() -> None:
    instance = make(SMALL)
    pairs = instance.pairs
    seconds = instance.tasks.units[pairs.task] * instance.modes.time_per_unit_s[pairs.mode]
    least = np.full(60, np.inf)
    np.minimum.at(least, pairs.task, seconds * instance.modes.req_count[pairs.mode])
    # Four nodes: 24 GPUs and 8 sockets.
    measured = seconds_of_work(
        "least", instance.modes, instance.pools, np.zeros(8, dtype=np.int64), columns_of(instance)
    )
    assert measured == pytest.approx(least.sum() / 32)


def test_capacity_of_equal_devices_is_their_number() -> None:
    # On GPUs of one type both measures are the same.
    instance = make("gpu_cluster:nodes=2,tasks=40,profiles=[V100],cpus=no")
    both = [
        seconds_of_work(
            measure, instance.modes, instance.pools, np.zeros(2, dtype=np.int64),
            columns_of(instance),
        )
        for measure in ("least", "capacity")
    ]  # fmt: skip
    assert both[0] == pytest.approx(both[1])


def test_capacity_of_two_types_balances_them() -> None:
    # One task of 12 units, large training, on a node of one H100 and a node of one A100: with x on
    # the A100 (1 s per unit) and the rest on the H100 (t s per unit), both end at once when
    # x = 12 t / (1 + t), which is also the time.
    instance = make("gpu_cluster:nodes=2,tasks=1,types=2,gpus=1,cpus=no")
    t = float(instance.modes.time_per_unit_s[instance.modes.req_pool == 0].min())
    columns = TaskColumns(instance.tasks.kind, np.array([12.0]), instance.tasks.memory_gb)
    measured = seconds_of_work(
        "capacity", instance.modes, instance.pools, np.array([0, 1]), columns
    )
    assert measured == pytest.approx(12 * t / (1 + t))


def test_the_load_is_work_over_the_span_of_arrivals() -> None:
    whole, half = (make(f"{SMALL},load={load}").tasks.release for load in (1.0, 0.5))
    # The same draws over a span twice as long, each rounded up to a tick.
    assert (np.abs(half - 2 * whole) <= 2).all()
    slow = make(f"{SMALL},load=1.0,load_of=capacity").tasks.release
    assert slow.max() >= whole.max()


def test_bursts_have_their_rate_and_leave_the_mean() -> None:
    at = draw_arrivals(np.random.default_rng(5), 40_000, 100.0, 4.0)
    assert (np.diff(at) >= 0).all() and at[0] >= 0 and at[-1] < 100.0
    # Ten cycles of 10 s: a burst of 2 s has a rate of 4, the other 8 s one of 1, so that bursts
    # have half of the jobs, 20,000 with a standard deviation of 100.
    assert int((at % 10.0 < 2.0).sum()) == pytest.approx(20_000, abs=400)
    calm = draw_arrivals(np.random.default_rng(5), 40_000, 100.0, 1.0)
    # A fifth of the jobs, 8,000 with a standard deviation of 80.
    assert int((calm % 10.0 < 2.0).sum()) == pytest.approx(8_000, abs=320)


# --- size ---


def test_large_clusters_are_built_without_a_table_of_pairs() -> None:
    instance = make("gpu_cluster:nodes=256,tasks=2000,load=0.8")
    assert instance.num_pools == 512 and instance.num_tasks == 2000
    assert instance.name == "gpu_cluster-256x2000-0"
    assert "pairs" not in vars(instance)


# --- parameters ---


@pytest.mark.parametrize(
    ("setting", "culprit"),
    [
        ("nodes=0", "nodes is 0; it must be at least 1"),
        ("types=11", "types is 11; it must be from 1 to 10"),
        ("profiles=[A100,A100-PCIe]", "must be different profiles"),
        ("clocks=9", "clocks is 9; it must be from 1 to 8"),
        ("gang=9", "gang is 9; it must be at most gpus, 8"),
        ("makespan_share=-1", r"makespan_share is -1\.0; it must be at least 0"),
        ("power_cap=0", r"power_cap is 0\.0; it must be none, or above 0 and at most 1"),
        ("node_cap=2", r"node_cap is 2\.0; it must be none, or above 0 and at most 1"),
        ("load=0", r"load is 0\.0; it must be none, or positive"),
        ("load=1,burst=0.5", r"burst is 0\.5; it must be at least 1"),
        ("burst=2", r"burst is 2\.0; it must be 1 without load"),
        ("tick_s=0", r"tick_s is 0\.0; it must be a positive number"),
        ("shape=ring", "shape"),
        ("load_of=most", "load_of"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value(setting: str, culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        make(f"gpu_cluster:{setting}")
