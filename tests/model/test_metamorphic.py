"""Changes of an instance whose effect is known beforehand, on random tiny instances and on GPU task
graphs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optbench as ob
from optbench.model.instance import Edges, Instance, Tasks
from optbench.model.metrics import power_trace
from optbench.model.objective import METRICS, Objective
from optbench.model.schedule import Schedule
from optbench.model.task_progress import ticks_left
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem, names
from optbench.units import J_PER_KWH
from tests.reference.brute_force import brute_force
from tests.reference.plain_facts import task_modes
from tests.reference.random_instances import tiny_instance

ENERGY = ("energy_j", "cost_usd", "carbon_g")
TIME = ("makespan_s", "flow_time_s", "tardiness_s")

seeds = st.integers(0, 100_000)


def one_by_one(instance: Instance, seed: int) -> Schedule:
    """Random modes; tasks one after the other in topological order, with random pauses; caps and
    limits are ignored.
    """
    rng = np.random.default_rng(seed)
    mode, start = np.zeros((2, instance.num_tasks), dtype=np.int64)
    clock = 0
    for i in instance.order.tolist():
        mode[i] = rng.choice(task_modes(instance, i))
        before = np.flatnonzero(instance.edges.target == i)
        lags = [_lag(instance, mode, int(e)) for e in before]
        start[i] = max(clock + rng.integers(0, 3), instance.tasks.release[i]) + max(lags, default=0)
        clock = int(start[i] + instance.duration(mode[i], instance.tasks.units[i]))
    if instance.horizon is not None:
        assume(clock <= instance.horizon)
    return Schedule.of(instance, mode, start)


def in_pieces(instance: Instance, whole: Schedule, seed: int) -> Schedule:
    """The schedule's tasks in its order, each cut into up to three pieces in modes at random; they
    follow one another.
    """
    rng = np.random.default_rng([seed, 1])
    rows, clock = [], 0
    for i in whole.task[np.argsort(whole.start, kind="stable")].tolist():
        clock, pieces = max(clock, int(instance.tasks.release[i])), int(rng.integers(1, 4))
        done: list[tuple[int, int]] = []
        for piece in range(pieces):
            mode = int(rng.choice(task_modes(instance, i)))
            whole_length = int(instance.duration(mode, instance.tasks.units[i]))
            left = ticks_left(done, whole_length)
            length = left if piece == pieces - 1 else int(rng.integers(0, left + 1))
            if length > 0 or (whole_length == 0 and not done):
                rows.append((i, mode, clock, clock + length))
                done.append((length, whole_length))
                clock += length + int(rng.integers(0, 2))
    assume(instance.horizon is None or clock <= instance.horizon)
    return Schedule(*np.asarray(rows, dtype=np.int64).T)


def _lag(instance: Instance, mode: np.ndarray[tuple[int, ...], np.dtype[np.int64]], e: int) -> int:
    primary = instance.modes.primary
    source, target = instance.edges.source[e], instance.edges.target[e]
    lag = float(
        instance.lag(primary[mode[source]], primary[mode[target]], instance.edges.data_gb[e])
    )
    return int(lag) if np.isfinite(lag) else 0


def in_fine_ticks(instance: Instance) -> Instance:
    """Ticks of about a thousandth, which nothing fits: times are large, and every duration and lag
    is rounded.
    """
    tasks, tariffs = instance.tasks, instance.tariffs
    return replace(
        instance,
        tick_s=instance.tick_s / 1100,
        horizon=None if instance.horizon is None else 1200 * instance.horizon,
        tasks=replace(tasks, release=1001 * tasks.release, deadline=1001 * tasks.deadline),
        tariffs=None if tariffs is None else replace(tariffs, times=1003 * tariffs.times),
    )


def metrics(instance: Instance, schedule: Schedule) -> dict[str, float]:
    return verify(instance, schedule).metrics


def with_doubled_powers(instance: Instance) -> Instance:
    modes, pools, links = instance.modes, instance.pools, instance.links
    return replace(
        instance,
        modes=replace(
            modes, energy_per_unit_j=2 * modes.energy_per_unit_j, power_w=2 * modes.power_w
        ),
        pools=replace(pools, idle_w=2 * pools.idle_w, sleep_w=2 * pools.sleep_w),
        links=replace(links, j_per_gb=2 * links.j_per_gb),
    )


@given(seeds)
def test_doubling_all_powers_doubles_energy_cost_carbon_and_peak(seed: int) -> None:
    instance = tiny_instance(seed)
    schedule = one_by_one(instance, seed)
    before, after = metrics(instance, schedule), metrics(with_doubled_powers(instance), schedule)
    # Twice a float is exact, and so is every sum of doubled terms.
    for name in (*ENERGY, "peak_power_w", "busy_energy_j", "rest_energy_j", "transfer_energy_j"):
        assert after[name] == 2 * before[name]
    for name in ("makespan", *TIME):
        assert after[name] == before[name]


@given(seeds, st.booleans())
def test_doubling_all_powers_doubles_them_in_pieces_and_in_fine_ticks_too(
    seed: int, whole: bool
) -> None:
    instance = replace(in_fine_ticks(tiny_instance(seed)), preemptive=True)
    schedule = one_by_one(instance, seed)
    schedule = schedule if whole else in_pieces(instance, schedule, seed)
    before, after = metrics(instance, schedule), metrics(with_doubled_powers(instance), schedule)
    for name in (*ENERGY, "peak_power_w"):
        assert after[name] == 2 * before[name]


@given(seeds)
def test_a_tick_of_double_length_doubles_times_and_resting_energy(seed: int) -> None:
    instance = tiny_instance(seed)
    schedule = one_by_one(instance, seed)
    modes, links = instance.modes, instance.links
    slower = replace(
        instance,
        tick_s=2 * instance.tick_s,
        modes=replace(modes, time_per_unit_s=2 * modes.time_per_unit_s),
        links=replace(links, latency_s=2 * links.latency_s, s_per_gb=2 * links.s_per_gb),
    )
    before, after = metrics(instance, schedule), metrics(slower, schedule)
    assert after["makespan"] == before["makespan"]
    for name in (*TIME, "rest_energy_j"):
        assert after[name] == pytest.approx(2 * before[name], rel=1e-12)
    assert after["busy_energy_j"] == before["busy_energy_j"]


@given(seeds, st.floats(0.01, 2.0))
def test_at_one_price_for_ever_the_cost_is_the_energy_times_the_price(
    seed: int, price: float
) -> None:
    instance = tiny_instance(seed)
    assume(instance.tariffs is not None)
    assert instance.tariffs is not None
    rates = np.full(instance.tariffs.price_usd_per_kwh.shape, price)
    flat = replace(
        instance, tariffs=replace(instance.tariffs, price_usd_per_kwh=rates, carbon_g_per_kwh=rates)
    )
    found = metrics(flat, one_by_one(instance, seed))
    assert found["cost_usd"] == pytest.approx(
        found["energy_j"] * price / J_PER_KWH, rel=1e-9, abs=1e-12
    )
    assert found["carbon_g"] == pytest.approx(found["cost_usd"], rel=1e-12)


def check_trace(instance: Instance, schedule: Schedule) -> None:
    trace = power_trace(instance, schedule)
    energy = metrics(instance, schedule)["energy_j"]
    assert trace.energy_j(instance.tick_s) == pytest.approx(energy, rel=1e-9, abs=1e-9)

    # The three sums that the energy is made of, each from its own part of the trace.
    found, width = metrics(instance, schedule), np.diff(trace.t) * instance.tick_s
    instant = float(trace.transfer_j.sum()) - found["transfer_energy_j"]
    for watts, joules in (
        (trace.busy_w, found["busy_energy_j"] - instant),
        (trace.rest_w, found["rest_energy_j"]),
    ):
        assert float((watts * width).sum()) == pytest.approx(
            joules, rel=1e-9, abs=1e-9 * max(1.0, abs(energy))
        )


@given(seeds)
def test_power_over_time_integrates_to_the_energy(seed: int) -> None:
    instance = tiny_instance(seed)
    check_trace(instance, one_by_one(instance, seed))


@given(seeds)
def test_power_over_time_integrates_to_the_energy_in_fine_ticks(seed: int) -> None:
    instance = in_fine_ticks(tiny_instance(seed))
    check_trace(instance, one_by_one(instance, seed))


@given(seeds, st.booleans())
def test_power_over_time_integrates_to_the_energy_of_pieces(seed: int, fine: bool) -> None:
    """Every task in up to three pieces, each in a mode of its own."""
    instance = tiny_instance(seed)
    instance = replace(in_fine_ticks(instance) if fine else instance, preemptive=True)
    check_trace(instance, in_pieces(instance, one_by_one(instance, seed), seed))


# Where the default instance is too large to run one task after the other.
SMALLER = {"geo_dc": "geo_dc:jobs=30,drain=yes"}
# Families whose instances are no task schedules.
OF_OTHER_SHAPES = ("colocation", "epoch_allocation", "gnn_training")


@pytest.mark.parametrize(
    "spec",
    [
        *(SMALLER.get(name, name) for name in names("problem") if name not in OF_OTHER_SHAPES),
        "gpu_dag:tasks=60,gpus=9,gang=4,price=yes,shape=chains",
    ],
)
def test_power_over_time_integrates_to_the_energy_in_every_family(spec: str) -> None:
    instance = load_problem(spec).instance(1)
    for seed in range(3):
        check_trace(instance, one_by_one(instance, seed))


def test_power_over_time_integrates_to_the_energy_of_an_open_instance() -> None:
    """From the first arrival on, with work cut at the horizon."""
    instance = load_problem("geo_dc:days=0.05,outage=[largest@30m+20m]").instance(1)
    result = ob.solve(instance, "default_policy", bound=False)
    assert result.schedule is not None and instance.opens > 0 and result.metrics["in_progress"] > 0
    check_trace(instance, result.schedule)


def permuted(
    instance: Instance, order: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> Instance:
    """Task ``order[i]`` becomes task i, under another name."""
    tasks, edges = instance.tasks, instance.edges
    place = np.argsort(order)
    rows = Tasks(
        kind=tasks.kind[order],
        units=tasks.units[order],
        release=tasks.release[order],
        deadline=tasks.deadline[order],
        deadline_hard=tasks.deadline_hard[order],
        weight=tasks.weight[order],
        memory_gb=tasks.memory_gb[order],
        names=tuple(f"renamed {i}" for i in range(len(order))),
    )
    return replace(
        instance, tasks=rows, edges=Edges(place[edges.source], place[edges.target], edges.data_gb)
    )


@given(seeds)
def test_the_order_and_names_of_tasks_change_no_metric(seed: int) -> None:
    instance = tiny_instance(seed)
    s = one_by_one(instance, seed)
    order = np.random.default_rng(seed).permutation(instance.num_tasks)
    other = permuted(instance, order)
    before, after = (
        verify(instance, s),
        verify(other, Schedule.of(other, s.mode[order], s.start[order])),
    )
    assert after.feasible == before.feasible
    for name in METRICS:
        assert after.metrics[name] == pytest.approx(before.metrics[name], rel=1e-12)


@given(seeds)
def test_the_order_of_segments_changes_no_metric(seed: int) -> None:
    instance = tiny_instance(seed)
    s = one_by_one(instance, seed)
    order = np.random.default_rng(seed).permutation(instance.num_tasks)
    shuffled = Schedule(s.task[order], s.mode[order], s.start[order], s.end[order])
    before, after = verify(instance, s), verify(instance, shuffled)
    assert after.feasible == before.feasible
    for name in METRICS:
        assert after.metrics[name] == pytest.approx(before.metrics[name], rel=1e-12)


def names_only(instance: Instance) -> Instance:
    pools, tasks = instance.pools, instance.tasks
    return replace(
        instance,
        name="another",
        tasks=replace(tasks, names=tuple(f"x{i}" for i in range(instance.num_tasks))),
        pools=replace(pools, names=tuple(f"y{p}" for p in range(instance.num_pools))),
    )


@given(seeds)
def test_names_are_no_part_of_the_hash_and_numbers_are(seed: int) -> None:
    instance = tiny_instance(seed)
    assert names_only(instance).hash == instance.hash
    assert with_doubled_powers(instance).hash != instance.hash
    assert instance.with_objective(Objective.weighted({"makespan": 3.0})).hash != instance.hash


def optimum(instance: Instance) -> float:
    best = brute_force(instance)
    return np.inf if best is None else best.objective


def relaxations(instance: Instance, seed: int) -> dict[str, Instance]:
    """The instance with one thing made easier."""
    rng = np.random.default_rng(seed)
    tasks, limits, edges = instance.tasks, instance.limits, instance.edges
    later = tasks.deadline + rng.integers(0, 4, instance.num_tasks)
    out = {
        "later deadlines": replace(instance, tasks=replace(tasks, deadline=later)),
        "higher caps": replace(instance, limits=replace(limits, cap_w=limits.cap_w + 40.0)),
        "higher limits": replace(
            instance,
            limits=replace(
                limits, metric_max={name: value * 1.2 for name, value in limits.metric_max.items()}
            ),
        ),
        "less memory": replace(instance, tasks=replace(tasks, memory_gb=tasks.memory_gb / 4)),
        "less data": replace(instance, edges=replace(edges, data_gb=edges.data_gb * 0.5)),
        "one edge less": replace(
            instance, edges=Edges(edges.source[1:], edges.target[1:], edges.data_gb[1:])
        ),
    }
    if "flow_time_s" not in instance.objective.metrics | set(limits.metric_max):
        out["earlier releases"] = replace(
            instance, tasks=replace(tasks, release=np.maximum(0, tasks.release - 1))
        )
    return out


@pytest.mark.parametrize("seed", range(40))
def test_making_things_easier_never_raises_the_optimum(seed: int) -> None:
    instance = tiny_instance(seed)
    before = optimum(instance)
    for what, easier in relaxations(instance, seed).items():
        after = optimum(easier)
        assert after <= before or after == pytest.approx(before, rel=1e-9), what


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_does_not_depend_on_the_order_of_tasks(seed: int) -> None:
    instance = tiny_instance(seed)
    order = np.random.default_rng(seed).permutation(instance.num_tasks)
    assert optimum(permuted(instance, order)) == pytest.approx(optimum(instance), rel=1e-9)
