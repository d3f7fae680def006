"""Loading the kernel's code (compiling it, where it is not in the cache) before a clock starts that should not count it."""

from __future__ import annotations

from functools import cache

import numpy as np

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.sim.compiled import in_cache
from optbench.sim.kernel import dispatch, moments, site_plans, site_routes, sites
from optbench.sim.moments import Decision, Moment, run_decisions
from optbench.sim.plans import board_of, plans_of, play_plans
from optbench.sim.routes import play_routes, routes_of
from optbench.sim.rules import list_rule, run_rule
from optbench.sim.sites import SiteRun, grid_of, play_sites, steering_of

ENTRIES = (
    dispatch.run, moments.open_desk, moments.take_up, moments.wait, moments.will_happen, moments.end_run,
    sites.run_sites, sites.next_choice, sites.send_to, sites.hold_until,
    site_routes.run_routes, site_plans.run_plans,
)  # fmt: skip


def is_compiled() -> bool:
    """Whether every entry lies in the cache."""
    return in_cache(*ENTRIES)


@cache
def load_kernel() -> None:
    """Run everything once."""
    instance = smallest()
    run_rule(instance, list_rule(instance))
    run_decisions(instance, _wait_first)
    grid = grid_of(instance)
    play_sites(instance, steering_of(grid, pools=np.zeros(instance.num_tasks, dtype=np.int64)))
    play_routes(grid, routes_of(grid))
    board = board_of(instance)
    play_plans(board, plans_of(board, np.zeros_like(board.rate), mu=0.0, kappa=0.0, patience_h=0.0, room=1.0))
    run = SiteRun(instance, steering_of(grid))
    while (task := run.asked()) is not None:
        if run.now < 1.0:
            run.hold(task, 1.0)
        else:
            run.send(task, 0)


def smallest() -> Instance:
    """Two tasks on one device, the second a second later."""
    m = Model("warm")
    gpu = m.pool("gpu")
    for release in (0, 1):
        m.task(modes=[m.mode(gpu, time_s=2)], release_s=release)
    m.minimize(makespan=1.0)
    return m.build()


def _wait_first(moment: Moment) -> Decision:
    return None if moment.can_wait else (int(moment.task[0]), int(moment.mode[0]))
