"""Play a policy, within a time limit and until it is told to stop; what it decided is kept."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from optbench.errors import PluginCrashError
from optbench.model.instance import Instance
from optbench.plugins.author_errors import author_code, refuse_result
from optbench.plugins.overtime import Returned, Watched, is_watched
from optbench.plugins.policy import Policy
from optbench.sim.kernel.moments import end_run
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import new_state
from optbench.sim.moments import TimedTrace, runs_with_decisions
from optbench.sim.rules import Trace

HowEnded = Literal["finished", "time_limit", "interrupted"]


def play_in_time(
    player: Policy,
    instance: Instance,
    seed: int,
    faults: Sequence[Fault],
    until: float,
    time_limit_s: float | None,
    stop: threading.Event | None,
) -> tuple[Trace, HowEnded]:
    """The trace of a policy, up to where it was stopped, and why it ended.

    A policy that decides in Python keeps its decisions; of one that runs in compiled code nothing
    can be seen before its end, and the trace is empty. A built-in policy is watched only where a
    time limit is given."""
    author = getattr(player, "author", None) or player
    play = partial(player.play, instance, np.random.default_rng(seed), faults, until)
    how: HowEnded = "finished"
    with author_code(author, player.deciding, PluginCrashError):
        if time_limit_s is None and not is_watched(author):
            trace = play()
        else:
            trace, how = _watched(play, instance, faults, time_limit_s, stop or threading.Event())
    if not isinstance(trace, Trace):
        raise refuse_result(player, "play", trace, "return the trace of run_rule(instance, ...)")
    if not isinstance(trace, TimedTrace):
        end_run(addresses(trace.plant), addresses(trace.state), until)
    return trace, how


def _watched(
    play: partial[Trace],
    instance: Instance,
    faults: Sequence[Fault],
    time_limit_s: float | None,
    stop: threading.Event,
) -> tuple[Trace, HowEnded]:
    ends_at = math.inf if time_limit_s is None else time.monotonic() + time_limit_s
    token = runs_with_decisions.set([])
    try:
        work = Watched(play, lambda: not stop.is_set() and time.monotonic() < ends_at, stop)
        done: Returned[Trace] | None = work.wait()
        if done is not None:
            return done.value, "finished"
        runs = runs_with_decisions.get()
        how: HowEnded = "interrupted" if stop.is_set() else "time_limit"
    finally:
        runs_with_decisions.reset(token)
    if not runs:
        plant = plant_of(instance, faults)
        return TimedTrace(plant, new_state(plant), None, np.zeros(0)), how
    plant, state, spent = runs[-1]
    # Without a schedule: an open instance would count as observed up to its horizon.
    return TimedTrace(plant, state, None, np.asarray(spent)), how
