"""The formulations of optbench.views.milp once more, slowly: entry by entry from the maths, sharing
no code with the view.

A table is (columns, rows, constant): ``columns[name] = (lower, upper, integer, cost)`` and
``rows[name] = (coefficients, lower, upper)``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

from optbench.model.instance import Instance
from optbench.model.windows import time_horizon

INF = math.inf
Table = tuple[dict[str, Any], dict[str, Any], float]
Sent = tuple[str, int, int, int, int]


class Reference:
    """Plain Python facts about an instance, and the table in the making."""

    def __init__(self, inst: Instance) -> None:
        self.inst, self.n, self.tick = inst, inst.num_tasks, inst.tick_s
        self.step = inst.tick_s
        t, m = inst.tasks, inst.modes
        self.pairs = [
            (i, k)
            for i in range(self.n)
            for k in range(int(m.kind_ptr[t.kind[i]]), int(m.kind_ptr[t.kind[i] + 1]))
        ]
        self.dur = {
            (i, k): self.time(float(t.units[i]) * float(m.time_per_unit_s[k]))
            for i, k in self.pairs
        }
        self.energy = {
            (i, k): float(t.units[i]) * float(m.energy_per_unit_j[k]) for i, k in self.pairs
        }
        self.needs = {
            k: [
                (int(m.req_pool[r]), int(m.req_count[r]))
                for r in range(int(m.req_ptr[k]), int(m.req_ptr[k + 1]))
            ]
            for k in range(len(m.clock))
        }
        self.home = {k: need[0][0] for k, need in self.needs.items()}
        p = inst.pools
        self.rest = [
            float(p.sleep_w[q] if p.gated[q] else p.idle_w[q]) for q in range(inst.num_pools)
        ]
        self.count = [int(c) for c in p.count]
        self.edges = list(
            zip(
                inst.edges.source.tolist(),
                inst.edges.target.tolist(),
                inst.edges.data_gb.tolist(),
                strict=True,
            )
        )
        self.weights = dict(inst.objective.levels[0])
        self.metric_max = dict(inst.limits.metric_max)
        self.wanted = set(self.weights) | set(self.metric_max)
        self.end = time_horizon(inst)
        self.end = math.floor(self.end)
        self._set_windows()
        tariffs = inst.tariffs
        self.varying = (
            tariffs is not None
            and len(tariffs.times) > 1
            and bool(self.wanted & {"cost_usd", "carbon_g"})
        )
        self.times = tariffs.times.tolist() if self.varying and tariffs is not None else [0.0]
        self.energetic = bool(self.wanted & {"energy_j", "cost_usd", "carbon_g"})
        self.paid_rest = inst.horizon is None and any(r > 0 for r in self.rest) and self.energetic
        self.needs_makespan = bool(self.wanted & {"makespan", "makespan_s"}) or self.paid_rest
        self.columns: dict[str, Any] = {}
        self.rows: dict[str, Any] = {}

    def _set_windows(self) -> None:
        """Earliest starts, latest ends, and the least time from each end to the end of all."""
        t = self.inst.tasks
        self.head = [0.0] * self.n
        for i in range(self.n):  # tasks of the tests are numbered in topological order
            self.head[i] = max(
                [float(t.release[i])]
                + [
                    self.head[a] + self.fast(a) + self.least_lag(e)
                    for e, (a, b, _) in enumerate(self.edges)
                    if b == i
                ]
            )
        self.latest = [0.0] * self.n
        self.tail = [0.0] * self.n
        for i in reversed(range(self.n)):
            out = [(e, b) for e, (a, b, _) in enumerate(self.edges) if a == i]
            hard = float(t.deadline[i]) if t.deadline_hard[i] else INF
            self.latest[i] = min(
                [self.end, hard]
                + [self.latest[b] - self.fast(b) - self.least_lag(e) for e, b in out]
            )
            self.tail[i] = max(
                [0.0] + [self.least_lag(e) + self.fast(b) + self.tail[b] for e, b in out]
            )
        self.critical = max(self.head[i] + self.fast(i) + self.tail[i] for i in range(self.n))

    def time(self, seconds: float) -> float:
        return math.ceil(seconds / self.tick - 1e-9 * max(1.0, seconds / self.tick))

    def of(self, i: int) -> list[int]:
        return [k for a, k in self.pairs if a == i]

    def fast(self, i: int) -> float:
        return min(self.dur[i, k] for k in self.of(i))

    def pools(self, i: int) -> list[int]:
        return sorted({self.home[k] for k in self.of(i)})

    def lag(self, a: int, b: int, data: float) -> float:
        if a == b or data <= 0:
            return 0.0
        seconds = float(self.inst.links.latency_s[a, b]) + data * float(
            self.inst.links.s_per_gb[a, b]
        )
        return self.time(seconds) if math.isfinite(seconds) else INF

    def sent(self, a: int, b: int, data: float) -> float:
        return 0.0 if a == b or data <= 0 else data * float(self.inst.links.j_per_gb[a, b])

    def lags(self, e: int) -> list[float]:
        i, j, data = self.edges[e]
        return [self.lag(a, b, data) for a in self.pools(i) for b in self.pools(j)]

    def least_lag(self, e: int) -> float:
        return min(self.lags(e))

    def uniform(self, e: int) -> bool:
        return len(set(self.lags(e))) == 1 and math.isfinite(self.lags(e)[0])

    def costly(self, e: int) -> bool:
        i, j, data = self.edges[e]
        return self.energetic and any(
            self.sent(a, b, data) > 0 for a in self.pools(i) for b in self.pools(j)
        )

    def rate(self, metric: str, pool: int, t: float) -> float:
        """Per joule at a time."""
        if metric == "energy_j":
            return 1.0
        assert self.inst.tariffs is not None
        table = (
            self.inst.tariffs.price_usd_per_kwh
            if metric == "cost_usd"
            else self.inst.tariffs.carbon_g_per_kwh
        )
        return float(table[pool][self.period(t)]) / 3.6e6

    def period(self, t: float) -> int:
        return max(r for r, begin in enumerate(self.times) if begin <= t)

    def integral(self, metric: str, pool: int, a: float, b: float) -> float:
        cuts = [a, *(t for t in self.times if a < t < b), b]
        return sum((y - x) * self.rate(metric, pool, x) for x, y in pairwise(cuts))

    def spent(self, metric: str, i: int, k: int, s: float) -> float:
        """What task i from s on adds, rest power of its devices deducted."""
        p, home = self.dur[i, k], self.home[k]
        mean = self.integral(metric, home, s, s + p) / p if p > 0 else self.rate(metric, home, s)
        freed = sum(
            n * self.rest[q] * self.step * self.integral(metric, q, s, s + p)
            for q, n in self.needs[k]
        )
        return self.energy[i, k] * mean - freed

    def resting(self, metric: str, a: float, b: float) -> float:
        pools = range(len(self.count))
        return sum(
            self.count[q] * self.rest[q] * self.step * self.integral(metric, q, a, b) for q in pools
        )

    def change(self, place: int, k: int) -> float:
        below = [bool(b) for b in self.inst.under[place]]
        own = float(self.inst.modes.power_w[k]) if below[self.home[k]] else 0.0
        return own - sum(n * self.rest[q] for q, n in self.needs[k] if below[q])

    def room(self, place: int) -> float:
        limits = self.inst.limits
        cap = min(
            float(c) for q, c in zip(limits.cap_place, limits.cap_w, strict=True) if q == place
        )
        resting = sum(
            self.count[q] * self.rest[q] for q in range(len(self.rest)) if self.inst.under[place][q]
        )
        return cap * (1 + 2.0**-39) - resting

    def caps(self) -> list[int]:
        return sorted({int(q) for q in self.inst.limits.cap_place})

    def column(self, name: str, lower: float, upper: float, integer: bool = False) -> None:
        self.columns[name] = [lower, upper, integer, 0.0]

    def row(self, name: str, terms: list[tuple[str, float]], lower: float, upper: float) -> None:
        total: dict[str, float] = defaultdict(float)
        for column, value in terms:
            total[column] += value
        entries = {column: value for column, value in total.items() if value != 0}
        if not entries:
            if lower <= 0 <= upper:
                return
            self.column("nothing[0]", 0.0, 0.0)
            entries = {"nothing[0]": 1.0}
        self.rows[name] = (entries, lower, upper)

    def transfers(
        self, carried: list[int], carriers: dict[int, list[tuple[str, int, int]]]
    ) -> list[Sent]:
        """The send block; carriers of a task are (column, pool, period). Returns (column, edge, a,
        b, period).
        """
        out = []
        for e in carried:
            i, j, data = self.edges[e]
            keys, receivers = (
                sorted({(a, r) for _, a, r in carriers[i]}),
                sorted({b for _, b, _ in carriers[j]}),
            )
            linked = [
                (a, b, r) for a, r in keys for b in receivers if math.isfinite(self.lag(a, b, data))
            ]
            mine = [(f"send[{e},{a},{b},{r}]", e, a, b, r) for a, b, r in linked]
            for name, *_ in mine:
                self.column(name, 0.0, 1.0)
            for a, r in keys:
                self.row(
                    f"send_from[{e},{a},{r}]",
                    [(w[0], 1.0) for w in mine if (w[2], w[4]) == (a, r)]
                    + [(c, -1.0) for c, q, s in carriers[i] if (q, s) == (a, r)],
                    0.0,
                    0.0,
                )
            for b in receivers:
                self.row(
                    f"receive_at[{e},{b}]",
                    [(w[0], 1.0) for w in mine if w[3] == b]
                    + [(c, -1.0) for c, q, _ in carriers[j] if q == b],
                    0.0,
                    0.0,
                )
            out += mine
        return out

    def finish(self, metric: Any) -> Table:
        """Limits and objective from ``metric(name) -> (constant, terms)``."""
        for name, limit in self.metric_max.items():
            constant, terms = metric(name)
            self.row(f"limit_{name}", terms, -INF, limit * (1 + 2.0**-39) - constant)
        total = 0.0
        for name, weight in self.weights.items():
            constant, terms = metric(name)
            total += weight * constant
            for column, value in terms:
                self.columns[column][3] += weight * value
        return {name: tuple(column) for name, column in self.columns.items()}, self.rows, total
