"""Playing and learning tables of ``sim.chain`` in the kernel of sites: the Python side of
``kernel.site_chain``.
"""

from __future__ import annotations

import math

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites.steering import WISHED
from optbench.sim.kernel.state import NONE, last_moment, new_state
from optbench.sim.rules import Trace
from optbench.sim.sites.sites import grid_of, steering_of, trace_of
from tests.tiny_plants import chain_kernel as kernel
from tests.tiny_plants.chain import Chain


def lookup_of(instance: Instance, chain: Chain) -> kernel.Lookup:
    """Empty tables of a chain for an instance of its plant."""
    grid = grid_of(instance)
    mode_of = np.full(instance.num_modes, NONE, dtype=np.int64)
    mode_of[grid.mode_at[0, chain.pool_of, chain.devices - 1, chain.clock]] = np.arange(
        chain.num_modes
    )
    states, actions = chain.num_states, chain.num_modes + chain.num_pools
    number = np.zeros(8)
    number[kernel.FORGET] = 1.0
    return kernel.Lookup(
        shape=np.array([chain.num_modes, chain.room, kernel.CHANCES, 0, 0, 0], dtype=np.int64),
        number=number,
        first=chain.first,
        radix=chain.radix,
        config=np.zeros(chain.num_pools, dtype=np.int64),
        queue=np.zeros(chain.num_pools, dtype=np.int64),
        after_start=chain.after_start.ravel(),
        after_end=chain.after_end.ravel(),
        free=chain.free,
        running=np.concatenate([each.sum(axis=1) for each in chain.counts]),
        config_w=chain.config_w,
        pool_of=chain.pool_of,
        devices=chain.devices,
        clock=chain.clock,
        mode_of=mode_of,
        chance=np.zeros(states * actions),
        value=np.zeros(states),
        visits=np.zeros(states),
        drawn=np.zeros(0),
    )


def play_lookup(instance: Instance, lookup: kernel.Lookup, rng: np.random.Generator) -> Trace:
    """Play a table on the arrivals of an instance, or go on learning it."""
    plant, steering = plant_of(instance), steering_of(grid_of(instance), pick_by=WISHED)
    state = new_state(plant)
    # An arrival and a start, each with a toss and a choice.
    lookup = lookup._replace(drawn=rng.random(8 * instance.num_tasks + 64))
    lookup.shape[[kernel.DRAWN, kernel.DRAWS]] = 0, len(lookup.drawn)
    tables = (plant, state, steering, lookup)
    kernel.play_chain(*(addresses(each) for each in tables), last_moment(instance, math.inf))
    return trace_of(instance, plant, state)


def cumulated(chain: Chain, states: Ints, actions: Ints, share: Floats) -> Floats:
    """Chances of actions (a mode, or the number of modes plus a pool) as a lookup reads them."""
    out = np.zeros((chain.num_states, chain.num_modes + chain.num_pools))
    taken = actions != NONE
    out[states[taken], actions[taken]] = share[taken]
    return np.cumsum(out, axis=1).ravel()
