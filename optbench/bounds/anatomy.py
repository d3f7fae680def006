"""The anatomy of a gap: a schedule's objective above the certified bound, split among its
decisions.

The fluid LP (``fluid``) is min c·v, A v ≥ b, with rational duals y that prove the bound B
(``exact_check``) and reduced costs r = c − Aᵀ y. A schedule is a point v of it (``fluid_point``),
and with s_j the side of column j that r_j is paid with,

    objective − B = (objective − c·v) + Σ_j r_j (v_j − s_j) + Σ_i y_i (A v − b)_i
                    + (c·v's proven bound − B)

is an identity, whatever v and y are; complementary slackness says that every term would be 0 at an
optimum of the LP. The terms are summed in rational numbers and each goes to one part:

    clock       r of the mode used − least r with the same pools and counts
    count       that − least r in the same pools, any count of devices
    placement   that − least r of the task; transfers beyond what each mode's pool cannot avoid,
                and the time they take
    idle        y · slack of capacity rows: devices free while the LP would use them; makespan
                beyond its floor
    waiting     y · slack of start and completion rows, r of starts and of lateness: later than
                predecessors, transfers, heads and due dates ask for
    tariff      work in dear periods, and free devices in cheap ones
    unused      caps, limits, budgets and deadlines that the LP would use up
    relaxation  metrics above a combinatorial floor that the LP does not explain
    proof       roundings: of duals, of rows outward, of whole ticks, and the verifier's tolerance
                in seconds

The first three telescope to r less the least r of the task and are never negative: each step is a
minimum over more modes. Their order (clock, count, placement) is the order of increasing effort to
change a decision. A part is not an achievable saving: the LP shares tasks among modes and starts,
so that some of every part may be unavoidable. How much is proved to be so is the difference between
the best bound known and B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optbench.bounds.fluid.fluid_bound import FluidProof
from optbench.bounds.fluid.fluid_point import point_of
from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.lp.exact_check import Excess, Objects, excess
from optbench.bounds.lp.linear_program import LinearProgram
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import rate_at, transfers
from optbench.model.schedule import Schedule
from optbench.model.verify import verify

PARTS = (
    "clock",
    "count",
    "placement",
    "idle",
    "waiting",
    "tariff",
    "unused",
    "relaxation",
    "proof",
)
# Decisions that cost less than this part of the objective are within rounding.
WORTH_NAMING = 1e-9
# Rows by family: the part their slack belongs to. Families in no list are equations, or equal their
# terms up to rounding.
ROW_PART = {
    "capacity": "idle",
    "rest": "idle",
    "start": "waiting",
    "completion": "waiting",
    "early": "tariff",
    "late": "tariff",
    "room": "tariff",
    "cost_usd": "tariff",
    "carbon_g": "tariff",
    "deadline": "unused",
    "power": "unused",
    "lateness": "unused",
}


@dataclass(frozen=True)
class Decision:
    """What one task costs above its cost in the LP, and the mode it would have there; in units of
    the objective.
    """

    task: int
    mode: int
    instead: int
    clock: float
    count: float
    placement: float
    waiting: float

    @property
    def total(self) -> float:
        return self.clock + self.count + self.placement + self.waiting


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The exact parts of objective − bound, idle parts also by pool, and the decisions that cost
    most.
    """

    objective: float
    bound: float
    source: str
    exact: dict[str, Fraction]
    idle_by_pool: dict[str, float]
    decisions: tuple[Decision, ...]

    @property
    def excess(self) -> float:
        return self.objective - self.bound

    @property
    def exact_excess(self) -> Fraction:
        return Fraction(self.objective) - Fraction(self.bound)

    @property
    def parts(self) -> dict[str, float]:
        """The parts as floats whose ``math.fsum`` is the excess: the proof's part absorbs their
        rounding, then smaller parts.
        """
        out = {name: float(value) for name, value in self.exact.items()}
        smaller = sorted(
            (name for name in out if name != "proof" and out[name] != 0),
            key=lambda name: -abs(out[name]),
        )
        for name in ("proof", *smaller):
            out[name] += float(Fraction(self.excess) - sum(map(Fraction, out.values())))
            if math.fsum(out.values()) == self.excess:
                break
        return out


def anatomy(instance: Instance, schedule: Schedule, proof: FluidProof, top: int = 10) -> Anatomy:
    """Split the first level of a verified schedule's objective above the bound of this proof."""
    fluid = fluid_model(instance, proof.keep_edges)
    lp = fluid.program()
    objective = verify(instance, schedule).objectives[0]
    point = point_of(fluid, schedule)
    terms = excess(lp, proof.certificate, point)
    split = _ExcessSplit(fluid, lp, terms, point, schedule)
    split.modes()
    split.columns()
    split.rows()
    parts = split.parts
    # The objective is a rounded sum, and the bound is rounded or raised to whole ticks.
    priced = np.flatnonzero(lp.cost)
    cost = sum(
        (Fraction(float(lp.cost[j])) * Fraction(float(point[j])) for j in priced.tolist()),
        Fraction(0),
    )
    parts["proof"] += Fraction(objective) - cost + proof.proven - Fraction(proof.bound.value)
    return Anatomy(
        objective,
        proof.bound.value,
        proof.bound.source,
        parts,
        split.idle_by_pool(),
        split.decisions(top, objective),
    )


class _ExcessSplit:
    """Assigns the terms of one schedule to the parts."""

    def __init__(
        self, fluid: Fluid, lp: LinearProgram, terms: Excess, point: Floats, schedule: Schedule
    ) -> None:
        self.fluid, self.lp, self.terms, self.point, self.schedule = (
            fluid,
            lp,
            terms,
            point,
            schedule,
        )
        self.parts = dict.fromkeys(PARTS, Fraction(0))
        self.family = np.asarray(lp.family)
        instance, groups = fluid.instance, fluid.groups
        self.group = groups.group[schedule.task]
        key = groups.of * instance.num_modes + groups.mode
        order = np.argsort(key)
        self.entry = order[
            np.searchsorted(key[order], self.group * instance.num_modes + schedule.mode)
        ]
        self.waits = np.zeros(len(fluid.groups.size))
        self.sends = np.zeros(len(fluid.groups.size))
        self.steps: dict[str, Objects] = {}

    def modes(self) -> None:
        """Re-price in steps: the same pools and counts, the same pools, any mode of the task."""
        fluid, terms = self.fluid, self.terms
        reduced = terms.reduced[fluid.share]
        place, count = mode_classes(fluid.instance)
        of, mode = fluid.groups.of, fluid.groups.mode
        before = reduced
        for name, key in (
            ("clock", count[mode]),
            ("count", place[mode]),
            ("placement", np.zeros(len(mode), dtype=np.int64)),
        ):
            least = least_by(of * (int(key.max(initial=0)) + 1) + key, reduced)
            self.steps[name] = before - least
            before = least
        used = np.bincount(self.entry, minlength=len(mode)).astype(object)
        for name, step in self.steps.items():
            self.parts[name] += terms.price(sum((step * used).tolist()))
            self.parts["proof"] -= terms.price(sum((step * used).tolist()))
        self.parts["proof"] += terms.of(terms.column[fluid.share])

    def columns(self) -> None:
        """Assign the columns that are not shares: starts, lateness, makespan, metrics, tariff slots
        and rest.
        """
        fluid, terms = self.fluid, self.terms
        metrics = [column for name, column in fluid.metric.items() if name != "energy_j"]
        blocks = (
            ("waiting", fluid.start),
            ("waiting", fluid.late),
            ("tariff", fluid.slot),
            ("idle", np.asarray([fluid.makespan, *fluid.rest.values()])),
            ("relaxation", np.asarray(metrics, dtype=np.int64)),
            (
                "unused",
                np.asarray(
                    [fluid.metric["energy_j"]] if "energy_j" in fluid.metric else [], dtype=np.int64
                ),
            ),
        )
        for part, where in blocks:
            low = np.asarray([r >= 0 for r in terms.reduced[where].tolist()], dtype=bool)
            self.parts[part] += terms.of(terms.column[where[low]])
            # A negative reduced cost is charged at an upper limit: a cheap period, a budget, a
            # latest makespan.
            self.parts[part if part == "tariff" else "unused"] += terms.of(
                terms.column[where[~low]]
            )
        for block in (fluid.start, fluid.late):
            if len(block):
                self.waits += [
                    float(Fraction(t, 2**terms.bits)) for t in terms.column[block].tolist()
                ]

    def rows(self) -> None:
        terms = self.terms
        for family, part in ROW_PART.items():
            self.parts[part] += terms.of(terms.row[self.family == family])
        self.parts["proof"] += terms.of(terms.row[~np.isin(self.family, list(ROW_PART))])
        self._completion()
        self._transfer_time()
        self._transfer_energy()

    def _completion(self) -> None:
        here = np.flatnonzero(self.family == "completion")
        waits = [float(Fraction(t, 2**self.terms.bits)) for t in self.terms.row[here].tolist()]
        np.add.at(self.waits, self.lp.of[here], waits)

    def _transfer_time(self) -> None:
        """Count the slack of start rows due to data that takes longer than it must as placement,
        not waiting.
        """
        here = np.flatnonzero(
            (self.family == "start")
            & np.asarray([t != 0 for t in self.terms.dual.tolist()], dtype=bool)
        )
        instance, fluid = self.fluid.instance, self.fluid
        edges, groups = instance.edges, fluid.groups
        mode = np.zeros(instance.num_tasks, dtype=np.int64)
        entry = np.zeros(instance.num_tasks, dtype=np.int64)
        mode[self.schedule.task], entry[self.schedule.task] = self.schedule.mode, self.entry
        for row in here.tolist():
            e = int(self.lp.of[row])
            source, target = int(edges.source[e]), int(edges.target[e])
            primary = instance.modes.primary[[mode[source], mode[target]]]
            lag = float(instance.lag(primary[0], primary[1], edges.data_gb[e]))
            least = self._coefficient(row, int(fluid.share[entry[source]])) - float(
                groups.duration[entry[source]]
            )
            longer = self.terms.price(self.terms.dual[row]) * Fraction(max(0.0, lag - least))
            self.parts["placement"] += longer
            self.parts["waiting"] -= longer
            self.sends[groups.group[source]] += float(longer)
            waited = Fraction(self.terms.row[row], 2**self.terms.bits) - longer
            self.waits[groups.group[target]] += float(waited)

    def _coefficient(self, row: int, column: int) -> float:
        """Return the time in a start row: minus the coefficient of a share."""
        first, last = self.lp.row_ptr[row : row + 2]
        at = int(first + np.searchsorted(self.lp.column[first:last], column))
        return -float(self.lp.value[at]) if at < last and self.lp.column[at] == column else 0.0

    def _transfer_energy(self) -> None:
        """Assign slack of the energy and tariff rows, up to rounding: transfers beyond what the
        modes are charged.
        """
        instance, fluid = self.fluid.instance, self.fluid
        sender, sent_at, sent_j = transfers(instance, self.schedule)
        charged = float(fluid.sent_j[self.entry].sum()) + fluid.sent_least_j
        amounts = {"energy_j": max(0.0, float(sent_j.sum()) - charged)}
        if instance.tariffs is not None:
            tariffs = instance.tariffs
            for name, rates in (
                ("cost_usd", tariffs.price_usd_per_kwh),
                ("carbon_g", tariffs.carbon_g_per_kwh),
            ):
                of = [sender == p for p in range(instance.num_pools)]
                amounts[name] = sum(
                    float((sent_j[at] * rate_at(tariffs.times, rates[p], sent_at[at])).sum())
                    for p, at in enumerate(of)
                )
        for name, amount in amounts.items():
            for row in np.flatnonzero(
                self.family == ("energy" if name == "energy_j" else name)
            ).tolist():
                sent = self.terms.price(self.terms.dual[row]) * Fraction(amount)
                self.parts["placement"] += sent
                self.parts["proof" if name == "energy_j" else "tariff"] -= sent

    def idle_by_pool(self) -> dict[str, float]:
        """Return the idle parts of the capacity rows."""
        out: dict[str, Fraction] = {}
        for row in np.flatnonzero(self.family == "capacity").tolist():
            name = self.fluid.instance.pools.names[int(self.lp.of[row])]
            out[name] = out.get(name, Fraction(0)) + Fraction(
                self.terms.row[row], 2**self.terms.bits
            )
        return {name: float(value) for name, value in out.items()}

    def decisions(self, top: int, objective: float) -> tuple[Decision, ...]:
        """Return the tasks that cost most; a cost shared by equal tasks is divided evenly among
        them.
        """
        fluid, terms = self.fluid, self.terms
        best = first_least(fluid.groups.of, terms.reduced[fluid.share])
        size = fluid.groups.size
        cost = {
            name: np.asarray([float(terms.price(v)) for v in step[self.entry].tolist()])
            for name, step in self.steps.items()
        }
        least = WORTH_NAMING * max(1.0, abs(objective))
        pays = cost["clock"] + cost["count"] + cost["placement"] > least
        instead = np.where(pays, fluid.groups.mode[best[self.group]], self.schedule.mode)
        cost["placement"] = cost["placement"] + (self.sends / size)[self.group]
        waiting = (self.waits / size)[self.group]
        total = np.asarray(cost["clock"] + cost["count"] + cost["placement"] + waiting)
        rows = [k for k in np.argsort(-total, kind="stable")[:top].tolist() if total[k] > least]
        return tuple(
            Decision(
                int(self.schedule.task[k]),
                int(self.schedule.mode[k]),
                int(instead[k]),
                float(cost["clock"][k]),
                float(cost["count"][k]),
                float(cost["placement"][k]),
                float(waiting[k]),
            )
            for k in rows
        )


def mode_classes(instance: Instance) -> tuple[Ints, Ints]:
    """Return the number of each mode's set of pools, and of its pools with their counts."""
    modes = instance.modes
    places: dict[tuple[int, ...], int] = {}
    counts: dict[tuple[tuple[int, int], ...], int] = {}
    place, count = np.zeros((2, instance.num_modes), dtype=np.int64)
    for k in range(instance.num_modes):
        needs = range(int(modes.req_ptr[k]), int(modes.req_ptr[k + 1]))
        pairs = tuple(sorted((int(modes.req_pool[r]), int(modes.req_count[r])) for r in needs))
        place[k] = places.setdefault(tuple(pool for pool, _ in pairs), len(places))
        count[k] = counts.setdefault(pairs, len(counts))
    return place, count


def least_by(key: Ints, values: Objects) -> Objects:
    """Return for each entry the least value among those of its key."""
    if len(key) == 0:
        return values
    _, which = np.unique(key, return_inverse=True)
    order = np.argsort(which, kind="stable")
    size = np.bincount(which)
    return np.asarray(
        np.minimum.reduceat(values[order], np.cumsum(size) - size)[which], dtype=object
    )


def first_least(of: Ints, values: Objects) -> Ints:
    """Return per group the first entry with the least value."""
    least = least_by(of, values) == values
    entries = np.flatnonzero(least.astype(bool))
    out = np.zeros(int(of.max(initial=-1)) + 1, dtype=np.int64)
    out[of[entries[::-1]]] = entries[::-1]
    return out
