"""Choose a formulation by the estimated size of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Instance
from optbench.views.milp.completion import MAX_OUTLAST, outlast_coefficients
from optbench.views.milp.disjunctive import Disjunctive
from optbench.views.milp.frame import Frame, frame
from optbench.views.milp.implied_rows import is_tightened
from optbench.views.milp.occupancy_rows import pool_demand, power_limits
from optbench.views.milp.time_indexed import TimeIndexed, prices_end, start_windows

FORMS = ("auto", "time_indexed", "disjunctive")
# Beyond these sizes a formulation is refused: building it would exceed most budgets, and HiGHS
# makes no progress.
MAX_BINARIES = {"time_indexed": 200_000, "disjunctive": 20_000}
MAX_NONZEROS = 20_000_000
# A time-indexed relaxation is worth this many times the binaries of a disjunctive one, whose own
# bound is weak; with implied rows under precedence it is not (10 tasks, ticks of 10 s: 15 to 150
# nodes and 1 to 4 s, where the time-indexed one of six times the binaries stays open).
WORTH = {"shared": 20.0, "unary": 2.0, "tightened": 2.0}

Formulation = TimeIndexed | Disjunctive
FORMULATIONS: dict[str, type[TimeIndexed] | type[Disjunctive]] = {
    "time_indexed": TimeIndexed,
    "disjunctive": Disjunctive,
}
# Features that would change which schedules are feasible, and that no view has rows for.
NOT_EXPRESSED = frozenset({"cooling", "congestion", "waking"})


@dataclass(frozen=True)
class Size:
    """The estimated size of a formulation, without building it."""

    binaries: int
    nonzeros: float

    def fits(self, form: str) -> bool:
        return self.binaries <= MAX_BINARIES[form] and self.nonzeros <= MAX_NONZEROS


def time_indexed_size(base: Frame) -> Size:
    """Return the exact number of binaries, the coefficients of the rows per tick, and the ticks
    examined: no array is larger.
    """
    pairs = base.instance.pairs
    begin, number = start_windows(base)
    size = number.astype(float)
    pair, _, _ = pool_demand(base)
    rows = [pair, *(used for _, used, _, _ in power_limits(base))]
    per_tick = sum(float((size[part] * pairs.duration[part]).sum()) for part in rows)
    # Whether a resource is short is checked at every tick at which something can run.
    ticks = sum(
        min(float(base.end), float((size[part] + pairs.duration[part]).sum())) for part in rows
    ) * len(rows)
    if prices_end(base):
        written, with_columns = outlast_coefficients(base, begin, number)
        ticks += written if written <= MAX_OUTLAST else with_columns
    # Precedence: at most this, or the aggregated rows; transfers are linked to the starts of both
    # tasks.
    starts, edges = np.concatenate(([0.0], np.cumsum(size)))[pairs.ptr], base.instance.edges
    per_task = np.diff(starts)
    linked = float((per_task[edges.source] + per_task[edges.target]).sum())
    sums = 3.0 + len(base.instance.limits.metric_max)
    return Size(int(size.sum()), per_tick + ticks + 2.0 * linked + sums * float(size.sum()))


def disjunctive_size(base: Frame) -> Size:
    """Return an upper estimate: every two tasks that share a pool or a cap, in both orders."""
    instance = base.instance
    task, n = instance.pairs.task, instance.num_tasks
    pair, pool, _ = pool_demand(base)
    groups = [np.unique(task[pair[pool == p]]) for p in np.unique(pool)]
    groups += [np.unique(task[used]) for _, used, _, _ in power_limits(base)]
    ordered = min(float(n) * n, sum(float(len(group)) ** 2 for group in groups))
    return Size(int(ordered) + len(task), 8.0 * sum(float(len(group)) ** 2 for group in groups))


def choose(instance: Instance, end: float | None = None) -> tuple[str, str]:
    """Return the formulation for this instance and the reason; raise UnsupportedError with the
    remedy when neither is suitable.

    ``end`` is a known upper bound on an optimal makespan, which makes the time-indexed form
    smaller.
    """
    if instance.preemptive:
        raise UnsupportedError(
            f"no MILP view expresses the preemption of {instance.name!r}; use an online policy, "
            "or preemptive=False"
        )
    varying = "tariffs" in instance.features
    base = frame(instance, end)
    indexed, ordered = time_indexed_size(base), disjunctive_size(base)
    if varying:
        return _within("time_indexed", indexed, instance, "tariffs vary over time")
    shared = bool((instance.pools.count > 1).any()) or len(instance.limits.cap_w) > 0
    tightened = is_tightened(instance) and len(instance.edges.source) > 0
    worth = WORTH["tightened" if tightened else "shared" if shared else "unary"]
    sizes = f"{indexed.binaries:,} binaries time-indexed, at most {ordered.binaries:,} disjunctive"
    prefer_indexed = indexed.binaries <= worth * ordered.binaries
    if indexed.fits("time_indexed") and (prefer_indexed or not ordered.fits("disjunctive")):
        return "time_indexed", sizes
    if ordered.fits("disjunctive"):
        return "disjunctive", sizes
    return _within("time_indexed", indexed, instance, sizes)


def _within(form: str, size: Size, instance: Instance, reason: str) -> tuple[str, str]:
    if size.fits(form):
        return form, f"{reason}; about {size.binaries:,} binaries"
    if size.binaries > MAX_BINARIES[form]:
        excess = f"{size.binaries:,} binaries, more than {MAX_BINARIES[form]:,}"
    else:
        excess = f"about {size.nonzeros:,.0f} coefficients, more than {MAX_NONZEROS:,}"
    remedy = (
        "-s cpsat, or a longer tick_s" if form == "time_indexed" else "-s cpsat, or fewer tasks"
    )
    raise UnsupportedError(
        f"{instance.name!r} with {instance.num_tasks:,} tasks makes a {form} MILP of {excess}. "
        f"Use {remedy}."
    )


def formulate(
    instance: Instance,
    form: str = "auto",
    end: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    cuts: bool = True,
) -> tuple[Formulation, str]:
    """Return the formulation asked for (or chosen), and the reason. ``end`` is a known upper bound
    on an optimal makespan.

    Building it raises ``BuildStoppedError`` once ``should_stop()`` is true. ``cuts`` adds the
    implied rows of the disjunctive form.
    """
    missing = sorted(NOT_EXPRESSED & instance.features)
    if missing:
        raise UnsupportedError(
            f"no MILP view expresses {', '.join(missing)} of {instance.name!r}; use an online "
            "policy, or an instance without"
        )
    if form not in FORMS:
        raise ParameterError(f"form is {form!r}; it must be one of {', '.join(FORMS)}")
    if form == "auto":
        form, reason = choose(instance, end)
    elif instance.preemptive:
        return formulate(instance, "auto", end, should_stop, cuts)
    else:
        reason = "asked for"
        FORMULATIONS[form](instance)  # raises for features that it cannot express
        base = frame(instance, end)
        _within(
            form,
            time_indexed_size(base) if form == "time_indexed" else disjunctive_size(base),
            instance,
            reason,
        )
    if form == "disjunctive":
        return Disjunctive(instance, end, should_stop, cuts), reason
    return TimeIndexed(instance, end, should_stop), reason
