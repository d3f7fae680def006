"""The Python side of ``kernel.sampling``: the features of tasks and the tables of one search."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optbench.model.instance import Edges, Floats, Instance
from optbench.model.objective import MAKESPANS, METRICS
from optbench.model.schedule import Schedule
from optbench.model.streams import without_latencies
from optbench.model.timegrid import narrowed
from optbench.model.windows import Windows, latest_ends, windows
from optbench.sim.kernel import sampling as kernel
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import new_state
from optbench.sim.rules import has_choice, list_rule, queue_of_tasks, run_rule

# Tasks of a queue that are tried: a cap can leave devices free that no task may use, and thousands
# would be tried per event.
DEEPEST = 1000


class Sampler:
    """A search for good rules; the same seed and number of samples give the same rule, in any
    portions.
    """

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        ahead, reverse = windows(instance), reversed_instance(instance)
        plant, back = plant_of(instance), plant_of(reverse)
        both = (instance, reverse, instance)
        rule, flip, self.best = (
            list_rule(each, end_weight=1.0, depth=min(DEEPEST, instance.num_tasks)) for each in both
        )
        rule.after[:], flip.after[:] = ahead.tail, windows(reverse).tail
        self.search = search_of(instance, ahead, seed)
        self.tables = (plant, back, new_state(plant), rule, flip, self.search, self.best)
        self.rows = [addresses(table) for table in self.tables]

    def sample(self, count: int) -> bool:
        """Make ``count`` more samples; return whether a better one was among them."""
        return bool(kernel.samples(*self.rows, count))

    def begin_with(self, schedule: Schedule, objective: float, fresh: bool = True) -> None:
        """Draw around a feasible schedule, and keep only better samples; without ``fresh`` the
        first ones too, which else have keys of their own.
        """
        mine, value = self.search, self.search.value
        mine.start[schedule.task], mine.end[schedule.task] = schedule.start, schedule.end
        mine.mode[schedule.task] = schedule.mode
        value[[kernel.TOP_EXCESS, kernel.EXCESS]] = 0.0
        value[[kernel.TOP, kernel.CURRENT]] = objective
        if not fresh:
            mine.tally[kernel.SAMPLES] = max(mine.tally[kernel.SAMPLES], kernel.FIRST_FRESH)

    @property
    def made(self) -> int:
        return int(self.search.tally[kernel.SAMPLES])

    @property
    def found(self) -> bool:
        """Whether any sample was completed and better than the start of the search."""
        return bool(self.search.tally[kernel.BESTS] > 0)

    def rule(self) -> Rule:
        """Return the rule of the best sample; running it gives that sample again."""
        return self.best

    def schedule(self) -> Schedule | None:
        return run_rule(self.instance, self.best).schedule if self.found else None


def reversed_instance(instance: Instance) -> Instance:
    """Reverse time: edges are reversed; data that is not symmetric (releases, ingress latencies,
    data, tariffs) is left out.
    """
    edges, tasks = instance.edges, instance.tasks
    turned = Edges(source=edges.target, target=edges.source, data_gb=np.zeros(len(edges.source)))
    released = replace(tasks, release=np.zeros(instance.num_tasks, dtype=np.int64))
    stream = (
        None
        if instance.stream is None
        else without_latencies(instance.stream, np.arange(instance.num_tasks))
    )
    return replace(
        instance, edges=turned, tariffs=None, horizon=None, tasks=released, stream=stream
    )


def search_of(instance: Instance, known: Windows, seed: int) -> kernel.RuleSearch:
    """Return an empty search with weights centred on the longest remaining path."""
    n, objective = instance.num_tasks, np.zeros(len(METRICS))
    for metric, weight in instance.objective.levels[0]:
        objective[METRICS.index(metric)] = weight
    limits = instance.limits.metric_max
    features = features_of(instance, known)
    tally = np.zeros(6, dtype=np.int64)
    tally[kernel.FEATURES] = len(features)
    tally[kernel.HAS_CHOICE] = has_choice(instance)
    tally[kernel.HAS_ENERGY] = bool(instance.features & {"energy", "limits"})
    tally[kernel.HAS_DEADLINES] = bool(np.isfinite(instance.tasks.deadline).any())
    value = np.full(8, math.inf)
    only_time = instance.objective.metrics <= set(MAKESPANS)
    steps = dict(zip(MAKESPANS, (1.0, instance.tick_s), strict=True))
    value[kernel.PER_TIME] = (
        sum(w * steps[m] for m, w in instance.objective.levels[0]) if only_time else 0.0
    )
    value[kernel.MEAN_LENGTH] = max(float(known.shortest.mean()) if n else 1.0, 1e-9)
    value[kernel.REFINED] = 1.0 if only_time else 0.5
    centre = np.zeros(len(features))
    centre[0] = -1.0
    energy = instance.pairs.energy_j
    joined = len(instance.limits.cap_w) > 0 or instance.cooling is not None
    single = not joined and bool((np.diff(instance.modes.req_ptr) == 1).all())
    return kernel.RuleSearch(
        word=np.array([np.random.default_rng(seed).integers(2**62)], dtype=np.int64),
        tally=tally,
        value=value,
        objective=objective,
        limit=np.array([narrowed(limits.get(metric, math.inf)) for metric in METRICS]),
        feature=np.ascontiguousarray(features).ravel(),
        centre=centre,
        drawn=np.zeros(len(features)),
        home=queue_of_tasks(instance),
        single=np.array([single], dtype=np.int64),
        load=pool_loads(instance),
        joule=np.array([max(float(energy.mean()) if len(energy) else 1.0, 1e-9)]),
        start=np.zeros(n),
        end=np.zeros(n),
        mode=np.zeros(n, dtype=np.int64),
    )


def features_of(instance: Instance, known: Windows) -> Floats:
    """Return rows in [-1, 1]: longest remaining path, duration, head, rest of the path, load of the
    pools, path times load, latest end, slack, release, weight per duration.
    """
    pairs, n = instance.pairs, instance.num_tasks
    path = known.shortest + known.tail
    ways = np.diff(pairs.ptr)
    loads = np.append(pool_loads(instance), 0.0)  # -1, no pool, is the last
    crowded = np.bincount(
        pairs.task, weights=loads[instance.modes.primary[pairs.mode]], minlength=n
    ) / np.maximum(1, ways)
    soft = replace(instance, tasks=replace(instance.tasks, deadline_hard=np.ones(n, dtype=bool)))
    latest = latest_ends(soft, known)
    dated = np.isfinite(latest)
    latest = np.where(dated, latest, 2.0 * latest[dated].max() if dated.any() else 0.0)
    urgency = -instance.tasks.weight / np.maximum(known.shortest, 1e-9)
    rows = (
        path,
        known.shortest,
        known.head,
        known.tail,
        crowded,
        crowded * path,
        latest,
        np.where(dated, latest - path, 0.0),
        np.asarray(instance.tasks.release, dtype=float),
        urgency,
    )
    # A task that no link reaches has no path
    finite = [np.where(np.isfinite(row), row, 0.0) for row in rows]
    return np.array([row / max(float(np.abs(row).max(initial=0.0)), 1e-12) for row in finite])


def pool_loads(instance: Instance) -> Floats:
    """Return the work per device of each pool if tasks were spread evenly over their modes; the
    most loaded pool has 1.
    """
    pairs, modes = instance.pairs, instance.modes
    share = pairs.duration / np.maximum(1, np.diff(pairs.ptr))[pairs.task]
    size = np.diff(modes.req_ptr)[pairs.mode]
    row = np.repeat(np.arange(len(size)), size)
    req = (
        modes.req_ptr[pairs.mode[row]]
        + np.arange(len(row))
        - np.repeat(np.cumsum(size) - size, size)
    )
    work = np.bincount(
        modes.req_pool[req], weights=share[row] * modes.req_count[req], minlength=instance.num_pools
    )
    per_device = work / np.maximum(1, instance.pools.count)
    return np.asarray(per_device / max(float(per_device.max(initial=0.0)), 1e-12), dtype=np.float64)
