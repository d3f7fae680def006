"""The columns and rows of cost and carbon in the fluid LP, in plain Python; see ``fluid_table``."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

from tests.bounds.fluid_table import INF, FluidTable, plain

MARGIN = 1e-13


def add_tariff_part(table: FluidTable) -> None:
    """Slots, rest and costs, where a metric of the LP is priced."""
    instance, tariffs = table.instance, table.instance.tariffs
    wanted = [name for name in ("cost_usd", "carbon_g") if name in table.metrics]
    if tariffs is None or not wanted:
        return
    times = tariffs.times.tolist()
    periods = max(1, sum(1 for t in times if t < table.top))
    step = -(-periods * instance.num_modes // table.max_slots)
    merged = list(range(0, periods, step))
    begins = [float(times[t]) for t in merged]
    ends = [*begins[1:], max(table.top, begins[-1])]
    ends = [min(end, max(table.top, begins[-1])) for end in ends]
    _slots(table, begins, ends)
    for name in wanted:
        rates = (
            tariffs.price_usd_per_kwh if name == "cost_usd" else tariffs.carbon_g_per_kwh
        ).tolist()
        _rest(table, name, rates, times)
        lowest = [
            min(rate for t, rate in zip(times, each, strict=True) if t == 0 or t <= table.top)
            for each in rates
        ]
        blocks = [range(a, b) for a, b in pairwise([*merged, periods])]
        _cost(table, name, rates, blocks, lowest)


def _slots(table: FluidTable, begins: list[float], ends: list[float]) -> None:
    instance, slots = table.instance, range(len(begins))
    for k in range(instance.num_modes):
        work = {name: (g, d) for name, g, mode, d, _ in table.shares() if mode == k}
        longest = sum(len(g) * d for g, d in work.values()) * (1 + MARGIN)
        for t in slots:
            table.column(("V", k, t), 0, longest, 0)
        table.add(
            "worked",
            k,
            0,
            {("V", k, t): 1 for t in slots} | {x: -d for x, (_, d) in work.items()},
            equal=True,
        )
        if len(begins) * (len(table.shares()) + instance.num_modes * len(begins)) > table.window:
            continue
        for u in slots[:-1]:
            can: dict[Any, float] = {x: d for x, (g, d) in work.items() if table.head(g) < ends[u]}
            table.add("early", k, 0, {("V", k, t): -1 for t in slots if t <= u} | can)
            can = {x: d for x, (g, d) in work.items() if table.last(g) > begins[u + 1]}
            table.add("late", k, 0, {("V", k, t): -1 for t in slots if t > u} | can)
    for p in range(instance.num_pools):
        needs = {k: table.uses[k][p] for k in range(instance.num_modes) if table.uses[k][p]}
        for t in slots if needs else ():
            room = table.count[p] * (ends[t] - begins[t]) * (1 + MARGIN)
            table.add("room", p, -room, {("V", k, t): -n for k, n in needs.items()})


def _rest(table: FluidTable, name: str, rates: list[list[float]], times: list[int]) -> None:
    instance = table.instance
    low, top = table.least, table.top
    if instance.horizon is not None:
        low = top = float(instance.horizon)
    at = sorted({low, top, *(float(t) for t in times if low < t < top)})
    watts = [w * n * table.tick for w, n in zip(table.rest_w, table.count, strict=True)]
    nexts = [*times[1:], INF]

    def until(end: float) -> float:
        """Σ_p watts_p ∫_0^end rate_p."""
        spans = [max(0.0, min(end, b) - a) for a, b in zip(times, nexts, strict=True)]
        each_w = zip(watts, rates, strict=True)
        return sum(float(w) * sum(s * r for s, r in zip(spans, each)) for w, each in each_w)

    dearest = max(
        sum(w * abs(each[t]) for w, each in zip(watts, rates, strict=True))
        for t in range(len(times))
    )
    size = max(1.0, max(until(t) for t in at) + dearest * top)
    whole = [until(t) - MARGIN * 10 * size for t in at]
    table.column(
        ("R", name), (min(whole) - MARGIN * size, size), (max(whole) + MARGIN * 100 * size, size), 0
    )
    if instance.horizon is not None or len(at) == 1:
        table.add("rest", 0, (min(whole), size), {("R", name): 1})
        return
    edges = []
    for i, j in combinations(range(len(at)), 2):
        # An edge of the lower hull: all points lie above its line, those between and beyond
        # strictly.
        area = [
            (whole[m] - whole[i]) * (at[j] - at[i]) - (whole[j] - whole[i]) * (at[m] - at[i])
            for m in range(len(at))
        ]
        tiny = 1e-14 * size * (at[j] - at[i])
        if all(a > -tiny for a in area) and all(
            area[m] > tiny for m in range(len(at)) if not i <= m <= j
        ):
            edges.append((i, j))
    for row, (i, j) in enumerate(edges):
        slope = (whole[j] - whole[i]) / (at[j] - at[i])
        offset = min(w - slope * t for w, t in zip(whole, at, strict=True)) - MARGIN * size
        terms = {("R", name): plain(1), "C": (-slope, size / (at[j] - at[i]))}
        table.add("rest", 0, (offset, size * (1 + at[j] / (at[j] - at[i]))), terms)
        assert row < len(at)


def _cost(
    table: FluidTable, name: str, rates: list[list[float]], blocks: list[range], lowest: list[float]
) -> None:
    pools = range(table.instance.num_pools)
    terms: dict[Any, Any] = {("F", name): 3.6e6, ("R", name): -1}
    for k in range(table.instance.num_modes):
        mine = [(x, d, e) for x, _, mode, d, e in table.shares() if mode == k]
        power = min((e / d for _, d, e in mine if d > 0), default=0.0) * (1 - MARGIN)
        placed = table.primary[k] >= 0
        dearest = 0.0
        for slot, block in enumerate(blocks):
            prices = []
            for t in block:
                own = rates[table.primary[k]][t] if placed else 0.0
                spared = sum(
                    table.uses[k][q] * (table.rest_w[q] * table.tick) * rates[q][t] for q in pools
                )
                size = power * own + spared
                prices.append((-(power * own - spared - MARGIN * size), size))
                dearest = max(dearest, own)
            terms["V", k, slot] = max(prices)[0], max(size for _, size in prices)
        for x, d, e in mine:
            left = max(0.0, e - power * d - MARGIN * e)
            beyond = (lowest[table.primary[k]] if placed else 0.0) * left
            terms[x] = -(beyond - MARGIN * beyond - MARGIN * e * dearest), e * dearest
    table.add(name, 0, 0, terms)
