"""The result page: devices by lane, areas that are energies, self-contained and safe."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import optbench as ob
from optbench.html import axes, colours, gantt, power_chart, quantities, schedule_page
from optbench.model.instance import Instance
from optbench.model.metrics import power_trace
from optbench.model.result import Bound, Result, TrajectoryPoint
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.html.html_pages import dom_of, outline
from tests.reference.random_instances import tiny_instance


def cluster(tasks: int = 3, name: str = "t", cap_w: float | None = 900.0) -> Instance:
    """Tasks on two pools with transfers, clocks, a due date and a cap."""
    m = ob.Model("cluster")
    big, small = m.pool("big", count=3, idle_w=20), m.pool("small", count=2, idle_w=5)
    m.link(big, small, bandwidth_gbit_s=8, energy_j_per_gb=10)
    before = None
    for i in range(tasks):
        pool = (big, small)[i % 2]
        modes = [
            m.mode({pool: n}, time_s=60 / n, energy_j=6000 * n, clock=c)
            for n in (1, 2)
            for c in (0.5, 1.0)
        ]
        before = m.task(
            f"{name}{i}",
            modes=modes,
            data_gb={before: 2.0} if before else None,
            deadline_s=100.0 * (i + 1),
        )
    if cap_w is not None:
        m.limit(power_w=cap_w)
    m.minimize(energy_j=1.0, makespan_s=1.0, tardiness_s=1.0)
    return m.build()


def serial(instance: Instance, pick: int = 0) -> Schedule:
    """One task after the other, each in its ``pick``-th mode."""
    start, t = [], 0
    mode = [
        int(instance.pairs.mode[instance.pairs.ptr[i] + pick]) for i in range(instance.num_tasks)
    ]
    for i in range(instance.num_tasks):
        start.append(t)
        t += int(instance.duration(mode[i], instance.tasks.units[i])) + 5
    return Schedule.of(instance, mode, start)


def result_of(instance: Instance, schedule: Schedule, solver: str = "cpsat") -> Result:
    verdict = verify(instance, schedule)
    value = verdict.objective if isinstance(verdict.objective, float) else None
    bound = None if value is None else 0.9 * value
    points = (
        ()
        if value is None
        else (TrajectoryPoint(0.1, 1.5 * value, None), TrajectoryPoint(0.5, value, bound))
    )
    return Result(
        instance=instance.name,
        instance_hash=instance.hash,
        problem=None,
        solver=solver,
        seed=0,
        threads=2,
        status="feasible",
        termination="time_limit",
        objective=value,
        bound=bound,
        gap=None if value is None else 0.1,
        verified=verdict.feasible,
        violations=tuple(map(str, verdict.violations)),
        metrics=verdict.metrics,
        bounds=() if bound is None else (Bound(bound, "fluid_lp", "exact-lp"),),
        wall_s=1.0,
        time_to_first_s=0.1,
        peak_memory_mb=100.0,
        trajectory=points,
        schedule=schedule,
    )


def pointer_data(html: str) -> list[dict[str, object]]:
    return [
        json.loads(text)
        for text in re.findall(r'<script type="application/json">(.*?)</script>', html)
    ]


def test_the_power_curve_integrates_to_the_energy() -> None:
    instance = cluster()
    result = result_of(instance, serial(instance, pick=3))
    (axis,) = pointer_data(schedule_page.render(instance, [result]))
    width = np.diff(axis["t"]) * instance.tick_s  # type: ignore[call-overload]
    area = float((width * axis["w"]).sum()) + axis["transfer_j"]  # type: ignore[operator]
    assert area == pytest.approx(result.metrics["energy_j"], rel=1e-12)


def test_the_drawn_areas_are_the_energies_of_their_pools() -> None:
    instance = cluster(cap_w=None)
    trace = power_trace(instance, serial(instance, pick=3))
    time = axes.times(0.0, 1000.0, float(trace.t[-1]), 1.0)
    drawn, _ = power_chart.draw(instance, trace, time, 0.0)
    ceiling = 1.1 * float((trace.busy_w + trace.rest_w).sum(axis=0).max())
    # Coordinates are written to a tenth of a pixel, hence the tolerance over the width.
    joules = ceiling / power_chart.HEIGHT * float(trace.t[-1]) / 1000.0  # of one square pixel
    for kind, watts in (("busy", trace.busy_w), ("rest", trace.rest_w)):
        for p in range(instance.num_pools):
            (path,) = re.findall(
                rf'<path d="([^"]+)" fill="[^"]+" class="{kind}" data-p="{p}"/>', drawn
            )
            expected = float((watts[p] * np.diff(trace.t)).sum())
            assert staircase_area(path) * joules == pytest.approx(
                expected, rel=1e-3, abs=0.1 * 1000.0 * joules
            )


@pytest.mark.parametrize("seed", range(40))
def test_any_schedule_of_any_instance_can_be_drawn(seed: int) -> None:
    """Random modes and starts, feasible or not, over instances with every feature: well-formed, and
    energy in the curve.
    """
    instance = tiny_instance(seed)
    rng = np.random.default_rng(seed)
    ptr = instance.pairs.ptr
    mode = [
        int(instance.pairs.mode[rng.integers(ptr[i], ptr[i + 1])])
        for i in range(instance.num_tasks)
    ]
    schedule = Schedule.of(instance, mode, rng.integers(0, 12, instance.num_tasks))
    result = result_of(instance, schedule)
    html = schedule_page.render(instance, [result])
    outline(html)
    (axis,) = pointer_data(html)
    # Past a fixed horizon nothing rests: the energy of what ends later is that of the verifier only
    # within it.
    if (
        "t" in axis
        and "horizon" not in " ".join(result.violations)
        and "capacity" not in " ".join(result.violations)
    ):
        width = np.diff(axis["t"]) * instance.tick_s  # type: ignore[call-overload]
        area = float((width * axis["w"]).sum()) + axis["transfer_j"]  # type: ignore[operator]
        assert area == pytest.approx(result.metrics["energy_j"], rel=1e-9, abs=1e-9)


def staircase_area(path: str) -> float:
    """Shoelace over the corners of a path of M, H and V."""
    x = y = 0.0
    corners = []
    for letter, words in re.findall(r"([MHV])([-\d. ]+)", path):
        values = [float(word) for word in words.split()]
        x, y = (
            (values[0], values[1])
            if letter == "M"
            else (values[0], y)
            if letter == "H"
            else (x, values[0])
        )
        corners.append((x, y))
    following = corners[1:] + corners[:1]
    return abs(sum(a * d - b * c for (a, b), (c, d) in zip(corners, following, strict=True))) / 2


def test_an_infeasible_schedule_is_drawn_on_further_lanes_and_called_infeasible() -> None:
    instance = cluster(tasks=4)
    start = np.zeros(4, dtype=np.int64)
    crowded = Schedule.of(instance, serial(instance, pick=2).mode, start)
    html = schedule_page.render(instance, [result_of(instance, crowded)])
    outline(html)
    assert "the verifier refuses this schedule" in html
    assert "<li>precedence: task t1 starts at 0, before t0 ends" in html
    assert "not feasible" in html


def test_the_page_needs_no_network_and_is_small() -> None:
    instance = cluster(tasks=50, cap_w=None)
    results = [
        result_of(instance, serial(instance, pick), name)
        for pick, name in ((0, "cpsat"), (1, "highs"), (3, "rule"))
    ]
    html = schedule_page.render(instance, results)
    attributes = outline(html).attributes
    assert len(html.encode()) < 300_000
    assert [
        value for key, value in attributes if key in ("src", "href", "srcset", "data-src")
    ] == []
    assert not re.search(r"https?://|@import|url\(", html)
    assert html.count('class="chart gantt"') == 3


def test_names_cannot_inject_markup() -> None:
    instance = cluster(name="<script>alert(1)</script>&\"'")
    html = schedule_page.render(
        instance, [result_of(instance, serial(instance))], title="<b>bold</b>"
    )
    outline(html)
    assert "<script>alert" not in html
    assert "<b>bold</b>" not in html


def test_a_job_shop_has_no_power_curve_and_no_hours() -> None:
    m = ob.Model("shop")
    machines = [m.pool(f"m{i}") for i in range(2)]
    for job in range(2):
        first = m.task(f"j{job}.0", modes=[m.mode(machines[job], time_s=40)])
        m.task(f"j{job}.1", modes=[m.mode(machines[1 - job], time_s=60)], after=first)
    m.minimize(makespan=1.0)
    instance = m.build()
    html = schedule_page.render(
        instance, [result_of(instance, Schedule.of(instance, [0, 1, 2, 3], [0, 40, 0, 40]))]
    )
    outline(html)
    assert ">energy</th>" not in html and 'class="busy"' not in html and "resting" not in html
    assert ">100</text>" in html and "1:40" not in html
    assert "job 1" in html and "job 2" in html


def test_prices_that_vary_are_a_strip_and_constant_ones_are_not() -> None:
    m = ob.Model("tariffs")
    pool = m.pool("p", idle_w=10)
    m.task("t", modes=[m.mode(pool, time_s=100, energy_j=5000)])
    m.tariff(price_usd_per_kwh=[0.1, 0.3], carbon_g_per_kwh=200.0, every_s=60)
    m.minimize(cost_usd=1.0)
    instance = m.build()
    html = schedule_page.render(instance, [result_of(instance, serial(instance))])
    outline(html)
    assert html.count('class="tariff"') == 1
    assert "price: 0.3 USD/kWh\nfrom 1:00" in html and "carbon:" not in html
    assert ">cost</th>" in html


def test_a_result_without_schedule_is_a_row_of_the_table_only() -> None:
    instance = cluster()
    lost = Result(
        "cluster",
        instance.hash,
        None,
        "highs",
        0,
        1,
        "unknown",
        "time_limit",
        None,
        12.0,
        None,
        False,
        (),
        {},
        (Bound(12.0, "fluid_lp", "exact-lp"),),
        1.0,
        None,
        1.0,
        (),
    )
    html = schedule_page.render(instance, [lost])
    outline(html)
    assert "unknown, time limit" in html and "fluid_lp (exact-lp)" in html
    assert 'class="chart gantt"' not in html


def test_a_missed_due_date_is_marked() -> None:
    instance = cluster(cap_w=None)
    on_time, late = serial(instance, pick=2), serial(instance)
    assert not verify(instance, on_time).metrics["late_tasks"]
    shifted = Schedule.of(instance, late.mode, late.start + 60)
    assert verify(instance, shifted).metrics["late_tasks"] == 1
    assert schedule_page.render(instance, [result_of(instance, on_time)]).count(" missed") == 0
    assert 'class="flag soft missed"' in schedule_page.render(
        instance, [result_of(instance, shifted)]
    )


def test_a_page_is_a_whole_document() -> None:
    instance = cluster()
    html = schedule_page.render(instance, [result_of(instance, serial(instance))])
    assert html.startswith("<!doctype html>")


def test_groups_follow_the_slash_then_the_stem_of_the_names() -> None:
    assert colours.groups(cluster(name="infer"))[1] == ("infer0", "infer1", "infer2")
    m = ob.Model("names")
    pool = m.pool("p")
    for name in ("a/x", "a/y", "b/x"):
        m.task(name, modes=[m.mode(pool, time_s=1)])
    m.minimize(makespan_s=1.0)
    number, names = colours.groups(m.build())
    assert names == ("a", "b") and number.tolist() == [0, 0, 1]


def test_a_lower_clock_is_paler_and_no_clock_is_full() -> None:
    assert colours.shade("#204060", float("nan")) == "#204060"
    assert colours.shade("#204060", 1.0) == "#204060"
    half, low = colours.shade("#204060", 0.5), colours.shade("#204060", 0.1)
    assert int(low[1:3], 16) > int(half[1:3], 16) > 0x20


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0"),
        (0.25, "0.25 s"),
        (45, "45 s"),
        (90, "1:30"),
        (3900, "1:05:00"),
        (2 * 86400 + 10800, "2 d 3:00:00"),
    ],
)
def test_clock(seconds: float, words: str) -> None:
    assert quantities.clock(seconds) == words


@pytest.mark.parametrize("end", [0.003, 1.0, 7.0, 59.0, 4000.0, 86400.0, 3e7])
def test_ticks_are_few_inside_and_evenly_spaced(end: float) -> None:
    for step_s in (None, 1.0, 60.0):
        ticks = axes.times(0.0, 100.0, end, step_s).ticks
        assert 2 <= len(ticks) <= 11
        assert ticks[0] >= 0 and ticks[-1] <= end * (1 + 1e-9)
        assert np.allclose(np.diff(ticks), ticks[1] - ticks[0])


def test_a_tooltip_says_where_when_and_how_much() -> None:
    instance = cluster()
    assert gantt.describe(instance, serial(instance, pick=3), 0) == [
        "t0",
        "2 × big  ·  clock 100 %",
        "0 to 30 s  ·  30 s",
        "12 kJ  ·  400 W",
        "due 1:40  ·  1:10 to spare",
    ]


def test_the_script_runs_in_a_browser(tmp_path: Path) -> None:
    instance = cluster()
    results = [result_of(instance, serial(instance, k), f"s{k}") for k in (0, 3)]
    path = tmp_path / "p.html"
    path.write_text(schedule_page.render(instance, results), encoding="utf-8")
    dom = dom_of(path, tmp_path / "profile")
    # Only the script sets these: the pressed tab, the hidden second panel, tooltips moved out of
    # <title>.
    assert (
        'data-panel="0" aria-pressed="true"' in dom and 'data-panel="1" aria-pressed="false"' in dom
    )
    assert re.search(r'<figure class="panel" data-panel="1" hidden', dom)
    assert "data-tip=" in dom and dom.count("<title>") == 1
