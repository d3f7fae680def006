"""The tabu search of shops: after every move order, heads and tails are those of the sequences, and
its schedules are feasible and as long as it says.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from optbench.formats import format_registry
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.sim.primal import shop_graph as graph
from optbench.sim.primal.shop import ShopSearch, list_schedule
from optbench.sim.primal.tabu import NOW, WILD

Rng = np.random.Generator


def random_shop(folder: Path, rng: Rng, jobs: int, machines: int, least: int = 0) -> Instance:
    """A flexible job shop of 1 to 4 operations per job whose durations begin at ``least``."""
    lines = [f"{jobs} {machines} 1"]
    for _ in range(jobs):
        numbers = [int(rng.integers(1, 5))]
        for _ in range(numbers[0]):
            chosen = rng.permutation(machines)[: rng.integers(1, machines + 1)]
            numbers += [len(chosen)]
            for machine in chosen.tolist():
                numbers += [machine + 1, int(rng.integers(least, 5))]
        lines.append(" ".join(map(str, numbers)))
    path = folder / "shop.txt"
    path.write_text("\n".join(lines) + "\n")
    return format_registry.load(path)


def begun(instance: Instance, seed: int) -> ShopSearch:
    search = ShopSearch(instance, seed)
    search.begin(*list_schedule(instance, instance.order))
    return search


def longest_paths(search: ShopSearch) -> tuple[list[int], list[int]]:
    """Heads and tails by relaxing every arc until nothing changes: shares no code with the
    kernel.
    """
    instance, table = search.instance, search.table
    length = table[graph.LENGTH].tolist()
    arcs = [*zip(instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True)]
    arcs += [(i, j) for i, j in enumerate(table[graph.AFTER].tolist()) if j >= 0]
    heads, tails = instance.tasks.release.astype(int).tolist(), list(length)
    for _ in range(len(length) + 1):
        for i, j in arcs:
            heads[j] = max(heads[j], heads[i] + length[i])
            tails[i] = max(tails[i], tails[j] + length[i])
    assert all(heads[j] >= heads[i] + length[i] for i, j in arcs), "a cycle"
    return heads, tails


def check_state(search: ShopSearch) -> None:
    """Compare the state of the search with what its sequences say."""
    table, n = search.table, search.instance.num_tasks
    heads, tails = longest_paths(search)
    assert table[graph.HEAD].tolist() == heads
    assert table[graph.TAIL].tolist() == tails
    position, order = table[graph.POSITION], table[graph.ORDER]
    assert order[position].tolist() == list(range(n))
    edges, after = search.instance.edges, table[graph.AFTER]
    assert (position[edges.source] < position[edges.target]).all()
    followed = np.flatnonzero(after >= 0)
    assert (position[followed] < position[after[followed]]).all()
    assert table[graph.BEFORE][after[followed]].tolist() == followed.tolist()
    row = table[graph.ROW]
    assert (search.instance.pairs.task[row] == np.arange(n)).all()
    assert (search.rows[:, row] == table[[graph.MACHINE, graph.LENGTH]]).all()
    for machine in range(search.instance.num_pools):
        begin = search.line[machine]
        line = search.line[begin : begin + search.line[begin - 1]]
        assert sorted(line) == np.flatnonzero(table[graph.MACHINE] == machine).tolist()
        assert table[graph.PLACE][line].tolist() == list(range(len(line)))
        assert after[line[:-1]].tolist() == line[1:].tolist()
    ends = table[graph.HEAD] + table[graph.LENGTH]
    assert table[graph.LATEST][-1] == ends.max()
    mode = search.instance.pairs.mode[row]
    now = Schedule.of(search.instance, mode, table[graph.HEAD].copy())
    assert verify(search.instance, now).violations == ()


@pytest.mark.parametrize("seed", range(12))
def test_every_move_keeps_the_state_exact(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, machines = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    search = begun(random_shop(tmp_path, rng, jobs, machines), seed)
    search.patience = 15
    for k in range(60):
        search.state[WILD] = k % 3  # random moves reach what good ones never do
        search.step(1)
        check_state(search)
    best = search.schedule()
    verdict = verify(search.instance, best)
    assert verdict.violations == ()
    assert verdict.metrics["makespan"] == search.makespan


def shortest(instance: Instance) -> int:
    """The least makespan, over every choice of rows and every list of tasks."""
    n, pairs = instance.num_tasks, instance.pairs
    before: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True):
        before[j].append(i)
    machine = instance.modes.primary[pairs.mode].tolist()
    lists = [
        order
        for order in itertools.permutations(range(n))
        if all(order.index(i) < order.index(j) for j in range(n) for i in before[j])
    ]
    best = 1 << 60
    for rows in itertools.product(*(range(pairs.ptr[i], pairs.ptr[i + 1]) for i in range(n))):
        for order in lists:
            end, free = [0] * n, [0] * instance.num_pools
            for i in order:
                begin = max([free[machine[rows[i]]], *(end[p] for p in before[i])])
                end[i] = free[machine[rows[i]]] = begin + int(pairs.duration[rows[i]])
            best = min(best, max(end))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_small_shops_are_solved(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    instance = random_shop(tmp_path, rng, 2, int(rng.integers(1, 4)))
    while instance.num_tasks > 6:
        instance = random_shop(tmp_path, rng, 2, int(rng.integers(1, 4)))
    search = begun(instance, seed)
    search.patience = 50
    search.step(3000)
    assert search.makespan == shortest(instance)


@pytest.mark.parametrize(("jobs", "machines"), [(1, 3), (5, 1), (1, 1)])
def test_one_job_and_one_machine(tmp_path: Path, jobs: int, machines: int) -> None:
    instance = random_shop(tmp_path, np.random.default_rng(7), jobs, machines, least=1)
    search = begun(instance, 0)
    search.patience = 20
    search.step(200)
    check_state(search)
    # One job is its shortest rows in turn; one machine its load, with nothing before it.
    pairs = instance.pairs
    least = [int(pairs.duration[pairs.ptr[i] : pairs.ptr[i + 1]].min()) for i in instance.order]
    assert search.makespan == sum(least)


def test_nothing_lasts(tmp_path: Path) -> None:
    path = tmp_path / "shop.txt"
    path.write_text("3 2 1\n2 2 1 0 2 0 1 1 0\n1 2 1 0 2 0\n2 1 2 0 1 1 0\n")
    search = begun(format_registry.load(path), 0)
    search.step(50)
    check_state(search)
    assert search.makespan == 0


def test_a_seed_and_an_amount_of_work_decide(tmp_path: Path) -> None:
    instance = random_shop(tmp_path, np.random.default_rng(3), 6, 4, least=1)

    def played(seed: int) -> tuple[list[int], int]:
        search = begun(instance, seed)
        search.patience = 30
        for _ in range(4):
            search.step(50)
        return search.table[: graph.ROW + 1].ravel().tolist(), search.makespan

    assert played(1) == played(1)
    assert played(1)[0] != played(2)[0]


def test_no_work_beyond_the_target(tmp_path: Path) -> None:
    search = begun(random_shop(tmp_path, np.random.default_rng(5), 5, 3), 0)
    search.aim(1000)
    search.step(100)
    assert search.state[NOW] == 0
    assert 0 < search.makespan <= 1000
