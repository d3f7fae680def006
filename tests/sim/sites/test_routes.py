"""The index router against the same index in plain Python, and against cases solved by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.routes import play_routes, routes_of
from optbench.sim.sites.sites import SiteRun, grid_of, steering_of

# Ticks of a second.
NS = 10**9


def played(instance: Instance, **options: Any) -> Schedule:
    schedule = play_routes(grid_of(instance), routes_of(grid_of(instance), **options)).schedule
    assert schedule is not None
    assert verify(instance, schedule).violations == ()
    return schedule


def where(instance: Instance, schedule: Schedule) -> list[str]:
    """Pool of each task, in their order."""
    order = np.argsort(schedule.task, kind="stable")
    return [instance.pools.names[p] for p in instance.modes.primary[schedule.mode[order]].tolist()]


def two_sites(
    releases: list[float], *, units: float = 10.0, prices: list[float] | None = None
) -> Instance:
    """A thrifty site of one device (1 s and 10 J a unit) and a fast one of two (half the time, 30 J
    a unit); no power at rest.
    """
    m = ob.Model("two sites", time="seconds")
    thrifty, fast = m.pool("thrifty", count=1, idle_w=0.0), m.pool("fast", count=2, idle_w=0.0)
    kind = m.kind(
        modes=[
            m.mode({thrifty: 1}, 1.0, 10.0),
            m.mode({fast: 1}, 0.5, 30.0),
            m.mode({fast: 2}, 0.25, 40.0),
        ]
    )
    m.tasks(np.full(len(releases), units), kind=kind, release_s=np.array(releases))
    if prices is not None:
        m.tariff(price_usd_per_kwh=prices, every_s=100.0)
        m.minimize(cost_usd=1.0)
    else:
        m.minimize(energy_j=1.0)
    return with_stream(m.build(), latency_s=np.zeros((1, 2)), ingress_names=("door",))


def random_stream(seed: int) -> Instance:
    """Forty jobs of two kinds from two ingresses to three sites of a few devices each."""
    rng = np.random.default_rng(seed)
    m = ob.Model(f"random {seed}", time="seconds")
    counts = rng.integers(1, 5, 3).tolist()
    pools = [
        m.pool(f"p{k}", count=count, idle_w=float(rng.uniform(0, 5)))
        for k, count in enumerate(counts)
    ]
    of = rng.integers(0, 2, 40)
    release = np.sort(rng.uniform(0, 60, 40))
    for k in range(2):
        modes = [
            m.mode({pool: n}, rng.uniform(0.5, 2) / n, rng.uniform(10, 60), clock=f)
            for pool, count in zip(pools, counts, strict=True)
            for n in (1, 2)
            for f in (0.5, 1.0)
            if n <= count
        ]
        m.tasks(
            rng.uniform(1, 20, int((of == k).sum())),
            kind=m.kind(modes=modes),
            release_s=release[of == k],
        )
    m.minimize(energy_j=1.0)
    return with_stream(
        m.build(),
        ingress=rng.integers(0, 2, 40),
        latency_s=rng.uniform(0, 3, (2, 3)),
        ingress_names=("a", "b"),
    )


def ranks_so_far(instance: Instance, now: float) -> np.ndarray:
    """Kinds in the order of the mean least time of their jobs that have come, those of which none
    has come first.
    """
    tasks, modes, kinds = instance.tasks, instance.modes, len(instance.modes.kind_names)
    mean = np.zeros(kinds)
    for kind in range(kinds):
        came = tasks.units[(tasks.kind == kind) & (tasks.release <= now)]
        if len(came):
            mean[kind] = came.mean() * modes.time_per_unit_s[modes.kind == kind].min()
    return np.asarray(np.argsort(np.argsort(mean, kind="stable"), kind="stable"))


def twin(instance: Instance, time_w: float, device_w: float, load: float) -> Schedule | None:
    """The index without levels, tariffs and budget; where all is full, a job goes where it ends
    first.
    """
    grid, modes = grid_of(instance), instance.modes
    cost = modes.energy_per_unit_j - instance.mode_rest_w * modes.time_per_unit_s
    cost = cost + (time_w + device_w * modes.devices) * modes.time_per_unit_s
    pick = grid.pick_cheapest(grid.of_mode(cost, np.inf))
    run = SiteRun(instance, steering_of(grid, pick=pick, short_first=True))
    sent: list[tuple[float, int, int]] = []
    stream = instance.stream
    assert stream is not None
    while (task := run.asked()) is not None:
        rank = ranks_so_far(instance, run.now)
        kind, units, way = (
            instance.tasks.kind[task],
            instance.tasks.units[task],
            stream.latency_s[stream.ingress[task]],
        )
        way_ticks = np.asarray(
            instance.access(np.full(len(way), task), np.arange(len(way))), dtype=float
        )
        free = run.state.free.copy()
        for reach, pool, devices in sent:
            free[pool] -= devices if reach > run.now else 0
        free = np.maximum(free, 0)
        value, wanted = np.full(len(free), np.inf), np.zeros(len(free), dtype=int)
        full = not free.any()
        for p in np.flatnonzero((free > 0) | full).tolist():
            wanted[p] = mode = pick[kind, p, grid.widest if full else min(free[p], grid.widest)]
            count = int(instance.pools.count[p])
            seconds = modes.time_per_unit_s[mode] * modes.devices[mode] / count
            ahead = run.steering.waiting_units[p] if rank[kind] > 0 or rank.max() == 0 else 0.0
            wait = (units + ahead) * seconds if full else 0.0
            if full:
                value[p] = way[p] + wait + units * modes.time_per_unit_s[mode]
                continue
            busy = (count - free[p] + run.steering.waiting[p]) / count
            value[p] = units * cost[mode] + time_w * (way[p] + wait) + load * busy
        best = int(value.argmin())
        sent.append((run.now + way_ticks[best], best, int(modes.devices[wanted[best]])))
        run.send(task, best)
    return run.trace().schedule


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("time_w", "device_w", "load"),
    [(0.0, 0.0, 0.0), (20.0, 0.0, 0.0), (5.0, 8.0, 0.0), (1.0, 0.0, 1e9)],
)
def test_it_decides_like_the_index_in_plain_python(
    seed: int, time_w: float, device_w: float, load: float
) -> None:
    instance = random_stream(seed)
    theirs = twin(instance, time_w, device_w, load)
    ours = played(instance, time_w=time_w, device_w=device_w, load=load)
    assert theirs is not None
    assert (ours.task == theirs.task).all()
    assert (ours.mode == theirs.mode).all()
    assert (ours.start == theirs.start).all()


def test_what_the_best_site_has_no_room_for_overflows() -> None:
    """The first takes the thrifty site until 10; the second, at 1, the fast one; the third finds
    the first free again.
    """
    instance = two_sites([0.0, 1.0, 11.0])
    assert where(instance, played(instance)) == ["thrifty", "fast", "thrifty"]


def test_a_second_has_a_price() -> None:
    """A unit costs 10 J and 1 s, or 30 J and 0.5 s on one device, or 40 J and 0.25 s on two.

    10 + μ < 30 + μ/2 and 10 + μ < 40 + μ/4 up to μ = 40 W, where all three cost 50; above, two
    devices are cheapest.
    """
    assert where(two_sites([0.0]), played(two_sites([0.0]), time_w=39.9)) == ["thrifty"]
    fast = played(two_sites([0.0]), time_w=40.1)
    assert fast.mode.tolist() == [2]


def test_devices_have_a_price_by_pool() -> None:
    instance = two_sites([0.0])
    # 10 J + 25 W for 1 s is dearer than 30 J + 0 W.
    assert where(instance, played(instance, device_w=[[25.0, 0.0]])) == ["fast"]


def test_thresholds_change_what_a_job_may_take() -> None:
    """Two devices while the fast site is quiet; above a busy share of 0.4 one: the second job comes
    when one of two is taken.
    """
    instance = two_sites([0.0, 1.0, 2.0])
    fast = replace(instance, pools=replace(instance.pools, count=np.array([1, 4])))
    allowed = np.array([[False, False, True], [False, True, False]])
    schedule = played(fast, thresholds=(0.4,), allowed=allowed, time_w=1000.0)
    by_task = schedule.mode[np.argsort(schedule.task)]
    # Two of four devices are 0.5: the second and third begin on one.
    assert by_task.tolist() == [2, 1, 1]


def test_where_waiting_is_expected_to_cost_less_jobs_queue() -> None:
    """The thrifty site saves 200 J on 10 units; the wait expected there is 10 s, free of charge
    without a price of time.
    """
    instance = two_sites([0.0, 1.0])
    assert where(instance, played(instance, queues=True)) == ["thrifty", "thrifty"]
    assert where(instance, played(instance, queues=True, time_w=25.0)) == ["thrifty", "fast"]


def test_a_budget_is_paid_back() -> None:
    """Alone, each job is cheapest at the thrifty site in 10 s. With a budget of 6 s the debt grows
    until 2.5 s are bought.
    """
    instance = two_sites([20.0 * k for k in range(40)])
    schedule = played(instance, budget_s=6.0, gain=20.0)
    mean = verify(instance, schedule).metrics["sojourn_mean_s"]
    assert 5.0 < mean <= 6.2
    assert set(where(instance, schedule)) == {"thrifty", "fast"}


def test_work_waits_for_a_cheap_period_within_its_patience() -> None:
    """0.3 USD until 100 s, then 0.1: the job of time 50 waits if it may, unless time or the margin
    costs more.
    """
    instance = two_sites([50.0], prices=[0.3, 0.1])
    money = {"rates": (0.0, 3.6e6, 0.0)}  # 10 units of 10 J at 0.3: 30 now, 10 later
    assert played(instance, hold_s=60.0, **money).start.tolist() == [100 * NS]
    assert played(instance, hold_s=40.0, **money).start.tolist() == [50 * NS]
    assert played(instance, hold_s=60.0, margin=0.7, **money).start.tolist() == [50 * NS]
    assert played(instance, hold_s=60.0, time_w=0.5, **money).start.tolist() == [50 * NS]


def test_a_job_waits_for_a_device_that_is_cheap_enough() -> None:
    """Thrifty costs 10 a unit, fast 30; at a reserve of 1 the second job waits for the thrifty
    site, looking every 300 s.
    """
    instance = two_sites([0.0, 1.0], prices=[0.3, 0.3])
    money = {"rates": (0.0, 3.6e6, 0.0), "margin": 1.0}
    assert where(instance, played(instance, hold_s=1000.0, reserve=3.0, **money)) == [
        "thrifty",
        "fast",
    ]
    patient = played(instance, hold_s=1000.0, reserve=1.0, **money)
    assert where(instance, patient) == ["thrifty", "thrifty"]
    assert sorted(patient.start.tolist()) == [0, 301 * NS]
    assert where(instance, played(instance, hold_s=299.0, reserve=1.0, **money)) == [
        "thrifty",
        "fast",
    ]


def test_jobs_on_their_way_count() -> None:
    """The second arrives while the first is on its way to the only thrifty device, and goes
    elsewhere.
    """
    instance = with_stream(
        two_sites([0.0, 1.0]), latency_s=np.array([[5.0, 0.0]]), ingress_names=("door",)
    )
    assert where(instance, played(instance)) == ["thrifty", "fast"]


def test_an_update_changes_the_prices_while_it_runs() -> None:
    instance = two_sites([0.0, 30.0, 60.0, 90.0])

    def dear(now: float, state: Any, routes: Routes) -> None:
        routes.device_w[:] = [1e6, 0.0] if now >= 40 * NS else [0.0, 0.0]

    grid = grid_of(instance)
    schedule = play_routes(grid, routes_of(grid), update=dear, every=40.0 * NS).schedule
    assert schedule is not None
    assert where(instance, schedule) == ["thrifty", "thrifty", "fast", "fast"]
