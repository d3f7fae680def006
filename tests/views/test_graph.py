"""The graph view: physics come back from it, tasks may be permuted, all instances have the same
kinds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from optbench.errors import ParameterError, UnknownNameError
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem
from optbench.views.graph import (
    COLUMNS,
    DYNAMIC,
    EDGE_TYPES,
    EDGES,
    NODE_TYPES,
    PAIR,
    STATIC,
    column,
    graph_of,
    physical,
    tables_of,
    with_state,
)
from optbench.views.graph.feature_columns import INSIDE, LINKED, PRECEDES, RUNS_ON, reverse
from tests.sample_files.inputs import cluster, shop
from tests.views.graph_cases import CASES, nested, permuted, rows_of, same


@pytest.fixture(params=CASES, name="instance")
def an_instance(request: pytest.FixtureRequest) -> Instance:
    return CASES[request.param]()


def test_physics_come_back(instance: Instance) -> None:
    """Durations, energies, powers, requirements, volumes and links, recomputed from features in
    double precision.
    """
    graph, pairs, modes, step = (
        graph_of(instance, double=True),
        instance.pairs,
        instance.modes,
        instance.tick_s,
    )
    assert (
        graph.pair_task.tolist() == pairs.task.tolist()
        and graph.pair_mode.tolist() == pairs.mode.tolist()
    )
    duration = instance.duration(pairs.mode, instance.tasks.units[pairs.task])
    same(physical(graph, "pair", "time"), duration * step)
    same(physical(graph, "pair", "energy"), pairs.energy_j)
    same(physical(graph, "pair", "power"), modes.power_w[pairs.mode])
    same(physical(graph, "pair", "rest_power"), instance.mode_rest_w[pairs.mode])
    clock = np.where(
        physical(graph, "pair", "has_clock") > 0, physical(graph, "pair", "clock"), np.nan
    )
    np.testing.assert_array_equal(clock, modes.clock[pairs.mode])
    same(physical(graph, PRECEDES, "volume"), instance.edges.data_gb)
    assert graph[PRECEDES].edge_index.tolist() == [
        instance.edges.source.tolist(),
        instance.edges.target.tolist(),
    ]
    same(physical(graph, "task", "release"), instance.tasks.release * step)
    same(physical(graph, "task", "weight"), instance.tasks.weight)
    same(physical(graph, "task", "memory"), instance.tasks.memory_gb)
    same(physical(graph, "device", "count"), instance.pools.count)
    same(physical(graph, "device", "idle_power"), instance.pools.idle_w)


def test_requirements_come_back(instance: Instance) -> None:
    """Every need of every pair is an edge with the mode's features, the first of a mode the primary
    one.
    """
    graph, pairs, modes = graph_of(instance, double=True), instance.pairs, instance.modes
    edge, pair = graph[RUNS_ON].edge_index.numpy(), graph[RUNS_ON].pair.numpy()
    devices = np.rint(physical(graph, RUNS_ON, "devices")).astype(int)
    primary = physical(graph, RUNS_ON, "primary") > 0
    found: list[list[tuple[int, int]]] = [[] for _ in pairs.task]
    for k in range(len(pair)):
        assert edge[0, k] == pairs.task[pair[k]]
        assert primary[k] == (not found[pair[k]])
        found[pair[k]].append((int(edge[1, k]), int(devices[k])))
    for row, mode in enumerate(pairs.mode.tolist()):
        need = slice(modes.req_ptr[mode], modes.req_ptr[mode + 1])
        assert found[row] == list(
            zip(modes.req_pool[need].tolist(), modes.req_count[need].tolist())
        )
    assert torch.equal(
        graph[RUNS_ON].edge_attr[:, : len(PAIR)], graph.pair_attr[graph[RUNS_ON].pair]
    )


def test_ways_in_come_back() -> None:
    instance = load_problem("geo_dc:jobs=5,drain=yes,only=[us-west,us-east]").instance(0)
    graph, pairs, stream = graph_of(instance, double=True), instance.pairs, instance.stream
    assert stream is not None
    way = stream.latency_s[stream.ingress[pairs.task], instance.modes.primary[pairs.mode]]
    np.testing.assert_allclose(physical(graph, "pair", "way"), way, rtol=1e-9)


def test_links_and_places_come_back(instance: Instance) -> None:
    graph = graph_of(instance, double=True)
    a, b = graph[LINKED].edge_index.numpy()
    latency = np.full_like(instance.links.latency_s, np.inf)
    np.fill_diagonal(latency, 0.0)
    latency[a, b] = physical(graph, LINKED, "latency")
    same(latency, instance.links.latency_s)
    around = np.full(instance.num_pools, 0)
    inside = graph["device", "in", "node"].edge_index.numpy()
    around[inside[0]] = inside[1] + 1
    assert around.tolist() == instance.pools.place.tolist()
    parents = np.zeros(len(instance.places.names), dtype=int)
    parents[graph["node", "in", "node"].edge_index[0].numpy() + 1] = (
        graph["node", "in", "node"].edge_index[1].numpy() + 1
    )
    assert parents[1:].tolist() == instance.places.parent[1:].tolist()


def test_every_kind_is_always_there(instance: Instance) -> None:
    """One model fits all instances: same kinds, same widths, finite features, in single
    precision.
    """
    graph = graph_of(instance)
    assert graph.validate()
    assert tuple(graph.node_types) == NODE_TYPES and set(graph.edge_types) == set(EDGE_TYPES)
    for kind in NODE_TYPES:
        assert graph[kind].x.dtype == torch.float32 and graph[kind].x.shape[1] == len(COLUMNS[kind])
        assert torch.isfinite(graph[kind].x).all(), kind
    for edge, columns in EDGES.items():
        assert (
            graph[edge].edge_attr.shape[1] == len(columns)
            and torch.isfinite(graph[edge].edge_attr).all()
        )
    for edge in (PRECEDES, RUNS_ON, LINKED, *INSIDE):
        assert torch.equal(graph[edge].edge_index.flip(0), graph[reverse(edge)].edge_index)
    flags = [
        (kind, name)
        for kind in NODE_TYPES
        for name, measure in COLUMNS[kind].items()
        if measure in ("flag", "share")
    ]
    for kind, name in flags:
        values = graph[kind].x[:, column(kind, name)]
        assert ((values >= 0) & (values <= 1)).all(), (kind, name)


def test_single_precision_is_enough_to_tell_modes_apart() -> None:
    instance = load_problem("gpu_dag:tasks=40,gpus=6").instance(1)
    graph = graph_of(instance)
    np.testing.assert_allclose(physical(graph, "pair", "time"), instance.pairs.duration, rtol=2e-6)
    np.testing.assert_allclose(
        physical(graph, "pair", "energy"), instance.pairs.energy_j, rtol=2e-6
    )


def test_nested_places_by_hand() -> None:
    """The site holds 3 + 4 devices at 7 and 11 W: 65 W of its 100 W at rest; the cluster 10
    W more.
    """
    graph = graph_of(nested(), double=True)
    assert physical(graph, "node", "devices").tolist() == pytest.approx([7, 4])
    assert physical(graph, "node", "rest_power").tolist() == pytest.approx([65, 44])
    assert physical(graph, "node", "cap").tolist() == pytest.approx([100, 0])
    assert physical(graph, "node", "headroom").tolist() == pytest.approx([35, 0])
    assert physical(graph, "cluster", "rest_power").tolist() == pytest.approx([75])
    assert physical(graph, "cluster", "horizon").tolist() == pytest.approx([500])
    assert graph["device", "in", "cluster"].edge_index.tolist() == [[0], [0]]
    assert graph["device", "in", "node"].edge_index.tolist() == [[1, 2], [0, 1]]
    assert graph["node", "in", "node"].edge_index.tolist() == [[1], [0]]
    assert graph["node", "in", "cluster"].edge_index.tolist() == [[0], [0]]
    # One way only; 2 GB at 1 GB/s and 3 J per GB is the mean volume.
    assert graph[LINKED].edge_index.tolist() == [[1], [2]]
    assert [physical(graph, LINKED, name)[0] for name in EDGES[LINKED]] == pytest.approx(
        [0.5, 2, 6]
    )
    # Critical path: 2.5 s without a pool, 10 s on mid and low (mid sends), 2.5 s of transfer, 12 s
    # on low.
    assert physical(graph, "task", "head").tolist() == pytest.approx([0, 2.5 / 27, 15 / 27])
    assert physical(graph, "task", "tail").tolist() == pytest.approx([24.5 / 27, 14.5 / 27, 0])


def test_permuting_tasks_permutes_rows(instance: Instance) -> None:
    order = np.random.default_rng(5).permutation(instance.num_tasks)
    before, after = (
        graph_of(instance, double=True),
        graph_of(permuted(instance, order), double=True),
    )
    same(after["task"].x.numpy(), before["task"].x.numpy()[order])
    for kind in NODE_TYPES[1:]:
        same(after[kind].x.numpy(), before[kind].x.numpy())
    assert rows_of(after, order) == rows_of(before, np.arange(len(order)))


def test_doubling_all_powers_leaves_the_features_alone() -> None:
    """Twice the power: only the logarithms of the scales at the cluster move."""
    instance = load_problem("gpu_dag:tasks=15,gpus=5,deadlines=none").instance(2)
    modes, pools = instance.modes, instance.pools
    double = replace(
        instance,
        modes=replace(
            modes, power_w=2 * modes.power_w, energy_per_unit_j=2 * modes.energy_per_unit_j
        ),
        pools=replace(pools, idle_w=2 * pools.idle_w, sleep_w=2 * pools.sleep_w),
        links=replace(instance.links, j_per_gb=2 * instance.links.j_per_gb),
    )
    before, after = tables_of(instance), tables_of(double)
    for kind in ("task", "device", "node"):
        same(after.nodes[kind], before.nodes[kind])
    same(after.pairs, before.pairs)
    moved = after.nodes["cluster"][0] - before.nodes["cluster"][0]
    assert moved[column("cluster", "log_energy_scale")] == pytest.approx(np.log(2))
    assert moved[column("cluster", "log_time_scale")] == 0


def test_aims_are_shares() -> None:
    """Six tasks at τ and ε: 1 J weighs 6 ε, 50 J per s of makespan 300 τ."""
    instance = load_problem("gpu_dag:tasks=6,gpus=2,deadlines=none").instance(0)
    tables = tables_of(instance)
    time, energy = tables.scales.time, tables.scales.energy
    aims = tables.nodes["cluster"][
        0, column("cluster", "aim_makespan_s") : column("cluster", "aim_carbon_g") + 1
    ]
    assert aims.tolist() == pytest.approx(
        [50 * time / (50 * time + energy), energy / (50 * time + energy), 0, 0, 0, 0]
    )


def test_a_state_goes_into_the_last_columns() -> None:
    instance = nested()
    graph = graph_of(instance)
    before = {kind: graph[kind].x.clone() for kind in NODE_TYPES}
    state = with_state(
        graph,
        task=[[0.25, 0, 1, 0], [1, 1, 0, 12.5], [1, 0, 0, 0]],
        cluster=[[80.0, 0.0, 33.0, 0.5]],
    )
    assert physical(state, "task", "waited").tolist() == pytest.approx([0, 12.5, 0], rel=1e-6)
    assert physical(state, "task", "remaining").tolist() == [0.25, 1, 1]
    assert physical(state, "cluster", "now").tolist() == pytest.approx([33], rel=1e-6)
    assert torch.equal(
        state["task"].x[:, : len(STATIC["task"])], before["task"][:, : len(STATIC["task"])]
    )
    for kind in NODE_TYPES:
        assert torch.equal(graph[kind].x, before[kind]), "the graph given has changed"
    assert state[RUNS_ON].edge_attr is graph[RUNS_ON].edge_attr
    message = (
        r"state of 'device' has shape \(3, 1\); it must be \(3, 4\): free, next_free, price, carbon"
    )
    with pytest.raises(ParameterError, match=message):
        with_state(graph, device=np.zeros((3, 1)))
    with pytest.raises(
        ParameterError, match="state of 'tasks': unknown kind of node; did you mean 'task'"
    ):
        with_state(graph, tasks=np.zeros((3, 4)))


def test_the_static_graph_is_the_state_before_anything_starts() -> None:
    graph = graph_of(nested(), double=True)
    assert [physical(graph, "task", name).tolist() for name in DYNAMIC["task"]] == [
        [1, 1, 1],
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert physical(graph, "device", "free").tolist() == [1, 1, 1]
    priced = load_problem("gpu_dag:tasks=4,gpus=2,price=true").instance(0)
    assert priced.tariffs is not None
    found = physical(graph_of(priced, double=True), "device", "price")
    assert found.tolist() == pytest.approx(priced.tariffs.price_usd_per_kwh[:, 0].tolist())


def test_unknown_columns_are_named() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown column of 'task': 'realease'; did you mean 'release'"
    ):
        column("task", "realease")
    with pytest.raises(UnknownNameError, match="unknown kind of node 'tasks'; did you mean 'task'"):
        column("tasks", "release")
    graph = graph_of(shop(False))
    with pytest.raises(
        UnknownNameError, match="unknown column of 'task': 'realease'; did you mean 'release'"
    ):
        physical(graph, "task", "realease")
    with pytest.raises(
        UnknownNameError, match="unknown part of the graph 'pairs'; did you mean 'pair'"
    ):
        physical(graph, "pairs", "time")


def test_links_can_be_left_out() -> None:
    assert graph_of(cluster(), links=False)[LINKED].edge_index.shape == (2, 0)
    assert graph_of(cluster())[LINKED].edge_index.shape == (2, 2)


def test_the_page_names_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "graph.md").read_text()
    for columns in (*COLUMNS.values(), PAIR, *EDGES.values()):
        assert [name for name in columns if f"`{name}`" not in page] == []
    assert [edge for edge in EDGES if f"`{edge[1]}`" not in page] == []
