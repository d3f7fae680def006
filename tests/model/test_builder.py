"""Declaring: what becomes of each argument, and which error names which culprit."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.errors import ModelError, OptbenchError
from optbench.model.builder import Model, Pool
from optbench.power.profiles import profile


def two_pools() -> tuple[Model, Pool, Pool]:
    m = Model("m")
    return m, m.pool("a", 2, idle_w=10), m.pool("b", 1, idle_w=5, memory_gb=16)


def test_a_profile_makes_a_mode_per_pool_count_and_clock() -> None:
    m = Model()
    m.pool("a100", 2, profile="A100-PCIe", clocks=[0.5, 1.0])
    m.pool("l4", 4, profile="L4", clocks=[1.0])
    m.task("train", units=100, kind="training", gpus=(1, 2, 4))
    m.minimize(energy_j=1)
    modes = m.build().modes
    # a100 has 2 devices: n in {1, 2} x 2 clocks; l4 has 4: n in {1, 2, 4} x 1 clock.
    assert list(zip(modes.primary, modes.devices, modes.clock, strict=True)) == [
        (0, 1, 0.5), (0, 1, 1.0), (0, 2, 0.5), (0, 2, 1.0), (1, 1, 1.0), (1, 2, 1.0), (1, 4, 1.0),
    ]  # fmt: skip


def test_a_kind_is_declared_once_for_many_tasks() -> None:
    m, a, b = two_pools()
    fast = m.kind(modes=[m.mode(a, 1), m.mode(b, 2)])
    x, y = m.task("x", kind=fast, units=3), m.task("y", modes=[m.mode(b, 5)])
    m.tasks([1, 1], kind=fast)
    m.precede(x, y)
    m.minimize(makespan_s=1)
    instance = m.build()
    assert instance.tasks.kind.tolist() == [0, 1, 0, 0]
    assert instance.modes.time_per_unit_s.tolist() == [1, 2, 5]


def test_a_kind_of_explicit_modes_may_have_a_name() -> None:
    m, a, b = two_pools()
    named = m.kind("render", modes=[m.mode(a, 1), m.mode(b, 2)])
    m.task("x", kind=named)
    m.minimize(makespan_s=1)
    assert m.build().modes.time_per_unit_s.tolist() == [1, 2]
    with pytest.raises(ModelError, match="kind 'empty': modes is empty"):
        m.kind("empty", modes=[])


def test_small_problems_are_a_kind_of_their_own() -> None:
    # T4, training, clock 1: alpha_t + beta_t = 0.03023 + 0.1824 s per unit when full, and as much
    # again at half_size_gflop.
    m = Model(time="seconds")
    m.pool("t4", profile="T4", clocks=[1.0])
    half = profile("T4").law("training").half_size_gflop
    for size in (None, half, half / 3):
        m.task(units=1, kind="training", size_gflop=size)
    m.minimize(makespan_s=1)
    modes = m.build().modes
    assert len(modes.kind_names) == 3
    assert modes.time_per_unit_s.tolist() == pytest.approx([0.21263, 2 * 0.21263, 4 * 0.21263])


def test_groups_of_pools_are_linked_all_at_once() -> None:
    m = Model()
    near, far = [m.pool(f"near{i}") for i in range(3)], [m.pool(f"far{i}") for i in range(2)]
    m.link(near, near, bandwidth_gbit_s=80, energy_j_per_gb=1)
    m.link(near, far, bandwidth_gbit_s=8, latency_ms=2, both=False)
    m.task(modes=[m.mode(near[0], 1)])
    m.minimize(makespan_s=1)
    links = m.build().links
    inf = np.inf
    assert links.latency_s.tolist() == [
        *[[0, 0, 0, 0.002, 0.002]] * 3, [inf, inf, inf, 0, inf], [inf, inf, inf, inf, 0],
    ]  # fmt: skip
    assert links.s_per_gb[0].tolist() == [0, 0.1, 0.1, 1, 1]
    assert links.j_per_gb[:3, :3].tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    with pytest.raises(ModelError, match="link 'near1' to 'far0' is declared twice"):
        m.link(near[1], far)


def test_durations_round_up_once_and_forgive_float_noise() -> None:
    m = Model(tick_s=0.1)
    pool = m.pool("p")
    m.task(
        modes=[m.mode(pool, time_s=0.1)], units=3
    )  # 0.1 * 3 / 0.1 is 3.0000000000000004 in floats
    m.task(modes=[m.mode(pool, time_s=0.25)])
    m.minimize(makespan_s=1)
    assert m.build().pairs.duration.tolist() == [3, 3]


def test_energy_is_data_whatever_the_duration_was_rounded_to() -> None:
    m = Model(tick_s=10)
    m.task(modes=[m.mode(m.pool("p"), time_s=1.0, energy_j=100.0)], units=3)
    m.minimize(energy_j=1)
    instance = m.build()
    assert instance.pairs.duration.tolist() == [1]
    assert instance.pairs.energy_j.tolist() == [300.0]


def test_releases_round_up_and_deadlines_down() -> None:
    m = Model(tick_s=10)
    m.task(modes=[m.mode(m.pool("p"), time_s=1)], release_s=11, deadline_s=39)
    m.minimize(makespan_s=1)
    tasks = m.build().tasks
    assert (tasks.release.tolist(), tasks.deadline.tolist()) == ([2], [3])


def test_a_deadline_is_hard_unless_tardiness_is_priced_or_the_user_says() -> None:
    def hard(given: bool | None, **weights: float) -> bool:
        m = Model()
        m.task(modes=[m.mode(m.pool("p"), time_s=1)], deadline_s=5, hard=given)
        m.minimize(**weights)
        return bool(m.build().tasks.deadline_hard[0])

    assert hard(None, makespan_s=1) and not hard(None, tardiness_s=1)
    assert hard(True, tardiness_s=1) and not hard(False, makespan_s=1)


def test_data_gb_makes_predecessors_and_repeated_edges_add_up() -> None:
    m, a, b = two_pools()
    m.link(a, b, bandwidth_gbit_s=8)
    first = m.task("first", modes=[m.mode(a, 1)])
    second = m.task("second", modes=[m.mode(a, 1)], data_gb={first: 2.0})
    m.precede(first, second, 3.0)
    m.minimize(makespan_s=1)
    edges = m.build().edges
    assert (edges.source.tolist(), edges.target.tolist(), edges.data_gb.tolist()) == (
        [0],
        [1],
        [5.0],
    )


def test_a_transfer_takes_latency_and_bandwidth_and_nothing_within_a_pool() -> None:
    m, a, b = two_pools()
    m.link(a, b, bandwidth_gbit_s=8, latency_ms=500, energy_j_per_gb=7)
    m.task(modes=[m.mode(a, 1)])
    m.minimize(makespan_s=1)
    instance = m.build()
    # 3 GB = 24 Gbit at 8 Gbit/s = 3 s, plus 0.5 s, rounded up to ticks of 1 s.
    assert (
        instance.lag(0, 1, 3.0) == 4
        and instance.lag(0, 0, 3.0) == 0
        and instance.lag(0, 1, 0.0) == 0
    )
    assert instance.transfer_j(0, 1, 3.0) == 21.0


def test_many_tasks_from_arrays_equal_the_same_tasks_one_by_one() -> None:
    def model(many: bool) -> Model:
        m = Model()
        pool = m.pool("a100", 4, profile="A100-PCIe")
        units, release = np.array([10.0, 20.0, 30.0]), np.array([0.0, 5.0, 9.0])
        if many:
            ids = m.tasks(units, kind="training", gpus=(1, 2), release_s=release, pools=[pool])
            m.precede(ids[0], ids[2], 1.5)
        else:
            first, _, third = [
                m.task(units=u, kind="training", gpus=(1, 2), release_s=r, pools=[pool])
                for u, r in zip(units, release, strict=True)
            ]
            m.precede(first, third, 1.5)
        m.minimize(energy_j=1)
        return m

    assert model(True).build().hash == model(False).build().hash


def test_tasks_with_equal_modes_share_a_kind() -> None:
    m = Model()
    pool = m.pool("p")
    for _ in range(3):
        m.task(modes=[m.mode(pool, time_s=2, energy_j=5)])
    m.task(modes=[m.mode(pool, time_s=3, energy_j=5)])
    m.minimize(makespan_s=1)
    assert m.build().tasks.kind.tolist() == [0, 0, 0, 1]


def test_names_do_not_change_the_hash_but_numbers_do() -> None:
    def built(name: str, time_s: float) -> str:
        m = Model(name)
        m.task(name, modes=[m.mode(m.pool(name), time_s)])
        m.minimize(makespan_s=1)
        return m.build().hash

    assert built("x", 1) == built("y", 1) != built("x", 2)


def test_each_pool_takes_the_tariff_of_the_nearest_place_above_it() -> None:
    m = Model()
    site = m.place("site")
    node = m.place("node", inside=site)
    m.pool("here", at=node)
    m.pool("there")
    m.tariff(price_usd_per_kwh=[1, 2], every_s=60)
    m.tariff(price_usd_per_kwh=5, at=site)
    m.task(modes=[m.mode(None, 1)])
    m.minimize(cost_usd=1)
    tariffs = m.build().tariffs
    assert tariffs is not None and tariffs.times.tolist() == [0, 60]
    assert tariffs.price_usd_per_kwh.tolist() == [[5, 5], [1, 2]]


def test_a_transfer_that_takes_for_ever_is_refused() -> None:
    m, a, b = two_pools()
    m.link(a, b, bandwidth_gbit_s=1)
    x = m.task("x", modes=[m.mode(a, 1)])
    m.task("y", modes=[m.mode(b, 1)], data_gb={x: 1e20})  # the lag would not fit 64 bits
    m.minimize(makespan_s=1)
    with pytest.raises(ModelError, match=r"edge 'x' to 'y' carries 1e\+20 GB"):
        m.build()


def declare(m: Model, what: str) -> None:
    """One faulty declaration per name."""
    p = m.pool("p", 2, memory_gb=8)
    q = m.pool("q")
    ok = m.mode(p, 1)
    if what == "unknown kind":
        m.pool("gpu", profile="L4")
        m.task("x", kind="trainnig")
    elif what == "too many devices":
        m.task("x", modes=[m.mode({p: 3}, 1)])
    elif what == "memory":
        m.task("x", modes=[ok], memory_gb=9)
    elif what == "cycle":
        x, y = m.task("x", modes=[ok]), m.task("y", modes=[ok])
        m.precede(x, y)
        m.precede(y, x)
    elif what == "self edge":
        m.precede(m.task("x", modes=[ok]), 0)
    elif what == "no link":
        x = m.task("x", modes=[ok])
        m.task("y", modes=[m.mode(q, 1)], data_gb={x: 2})
    elif what == "names":
        m.task("x", modes=[ok])
        m.task("x", modes=[ok])
    elif what == "order of sums":
        m.task("x", modes=[ok])
        m.minimize_in_order({"energy_j": 1, "makespan_s": 2}, "energy_j")
        return
    elif what == "no tariff":
        m.task("x", modes=[ok])
        m.minimize(cost_usd=1)
        return
    elif what == "homeless energy":
        m.task("x", modes=[m.mode(None, 1, energy_j=5)])
    else:
        field, value = what.split("=")
        m.task("x", **{"modes": [ok], field: float(value)})  # type: ignore[arg-type]
    m.minimize(makespan_s=1)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "unknown kind",
            r"task 'x' of kind 'trainnig' .* cannot run on any pool; the pools' profiles have the "
            r"kinds \['inference', 'training'\]",
        ),
        ("too many devices", r"needs 3 devices of pool 'p', which has 2"),
        ("memory", r"task 'x' needs 9 GB per device; the largest it could use has 8 GB"),
        ("cycle", r"cycle: '(x' -> 'y' -> 'x|y' -> 'x' -> 'y)'"),
        ("self edge", r"cycle: 'x' -> 'x'"),
        ("no link", r"edge 'x' to 'y' carries 2 GB, but no link joins their pools"),
        ("names", r"two tasks are named 'x'"),
        ("order of sums", r"energy_j \+ makespan_s is not the last level"),
        ("no tariff", r"cost_usd is minimised or limited, but there is no tariff"),
        ("homeless energy", r"uses no pool but has energy"),
        ("units=0", r"units of task 'x' is 0.0; it must be positive and finite"),
        ("units=nan", r"units of task 'x' is nan"),
        (
            "units=1e300",
            (
                r"release and longest duration of task 'x' is 1e\+300; it must be together at most "
                r"2\^52 ticks"
            ),
        ),
        (
            "release_s=1e16",
            r"release_s of task 'x' is 1e\+16; it must be finite, and at most 2\^52 ticks of 1 s",
        ),
        ("release_s=-1", r"release of task 'x' is -1"),
        ("release_s=inf", r"release_s of task 'x' is inf"),
        ("deadline_s=-2", r"deadline of task 'x' is -2"),
        ("deadline_s=nan", r"deadline of task 'x' is nan"),
        ("weight=-3", r"weight of task 'x' is -3"),
        ("memory_gb=nan", r"memory_gb of task 'x' is nan"),
    ],
)
def test_a_faulty_declaration_names_the_culprit(what: str, message: str) -> None:
    m = Model()
    with pytest.raises(ModelError, match=message):
        declare(m, what)
        m.build()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.minimize(energy=1), "unknown metric 'energy'; did you mean 'energy_j'"),
        (lambda m: m.minimize(energy_j=-1), "weight of energy_j is -1"),
        (lambda m: m.minimize_in_order(), "at least one metric"),
        (lambda m: m.limit(energy=5), "unknown metric 'energy'; did you mean 'energy_j'"),
        (lambda m: m.pool("g", count=0), "pool 'g': count is 0"),
        (lambda m: m.pool("g", profile="A100-PCI"), "A100-PCIe"),
        (lambda m: m.task("x"), "task 'x': give either kind="),
        (lambda m: m.task("x", modes=[]), "task 'x': modes is empty"),
        (lambda m: m.task("x", kind="training", size_gflop=0), "task 'x': size_gflop is 0"),
        (
            lambda m: m.task("x", modes=[m.mode(None, 1)], size_gflop=1),
            "task 'x': size_gflop is 1.*goes with a kind",
        ),
        (
            lambda m: m.task("x", kind=m.kind(modes=[m.mode(None, 1)]), gpus=2),
            "'x': gpus, pools and size_gflop are arguments",
        ),
        (lambda m: m.kind(modes=[]), "kind 0: modes is empty"),
        (
            lambda m: m.tasks([1, 2], modes=[m.mode(None, 1)], release_s=[1, 2, 3]),
            r"release_s has shape \(3,\)",
        ),
        (lambda m: m.precede(0, 1), "there is no task 0; 0 are declared"),
        (lambda m: m.build(), "no objective"),
        (lambda m: m.mode({m.pool("g", 4): 2.7}, 1), "mode on pool 'g': devices is 2.7"),
        (lambda m: m.pool("g", count=float("nan")), "pool 'g': count is nan"),
        (lambda m: m.precede(0.7, 1.9), "by handle or index, not by 0.7"),
        (
            lambda m: m.tariff(price_usd_per_kwh=[1, 2, 3], times_s=[0, 7200, 3600]),
            r"times_s is \[0, 7200, 3600\]",
        ),
        (lambda m: [m.tariff(price_usd_per_kwh=p) for p in (1, 2)], "'cluster' has one already"),
        (
            lambda m: [m.link(a, b) for a, b in [(m.pool("a"), m.pool("b"))] * 2],
            "link 'a' to 'b' is declared twice",
        ),
        (
            lambda m: m.tariff(price_usd_per_kwh=[1, 2], carbon_g_per_kwh=[1, 2, 3]),
            "do not fit together",
        ),
    ],
)
def test_a_faulty_call_says_what_is_allowed(call: object, message: str) -> None:
    with pytest.raises(OptbenchError, match=message):
        call(Model())  # type: ignore[operator]


def test_a_hundred_thousand_tasks_keep_their_order_and_values() -> None:
    n = 100_000
    m = Model()
    m.pool("a100", 100, profile="A100-PCIe")
    ids = m.tasks(np.arange(1, n + 1), kind="training")
    m.precede(ids[:-1], ids[1:])
    m.minimize(energy_j=1)
    instance = m.build()
    assert instance.num_tasks == n and instance.tasks.units[-1] == n
    assert instance.order.tolist() == list(range(n))
