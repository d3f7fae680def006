"""The occupancy programme of a small plant: least energy per unit of work over all policies,
randomised ones too, under limits.

The chain is that of ``sim.chain``. Per accepted job, with time in units of 1/Λ: π_y ≥ 0 is the time
in stable state y, x_sa ≥ 0 how often action a is taken when s asks (a device, or an arrival in
stable state s), R_y the rate at which y is left:

    min  Σ_y P_y π_y
            P: power of all devices, at rest or not, so this is energy per job
    R_y π_y = Σ_{(s,a) → y} x_sa + Σ_{y' → y} r_{y'y} π_{y'}
            stable states: ends where nobody waits lead from one to another
    Σ_a x_sa = Σ_{y' → s} r_{y's} π_{y'} + Σ_{(s',a') → s} x_{s'a'}
            an arrival at y comes at rate π_y
    Σ x_sa over accepted arrivals = 1           lost ones: Σ x_sa ≤ ε / (1 − ε)
    Σ_y N_y π_y ≤ τ                             mean sojourn of accepted jobs, by Little's law
    Σ_y q_yp π_y ≤ Q_max Σ_y π_y                mean queue of pool p

Queues are finite and no device rests while a job waits for it, so every policy comes back to the
empty plant: the chain has one recurrent class, stationary randomised policies are enough, and the
value is exact for all policies that see counts and not sizes. It is an expectation over arrivals in
the long run: no bound on one instance, and it is never used as one.

A certificate in exact arithmetic (``exact_check``) says how far below the value nothing lies: π ≤ 1
/ (1 − ε), x ≤ the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.bounds.lp.exact_check import certificate, proven_bound, reduced_costs, round_down
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble, solve
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Bools, Floats, Ints
from optbench.sim.kernel.state import NONE
from tests.tiny_plants.chain import Chain

MAX_LOST = 1e-5
# Probabilities below this are noise of the linear programme.
NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class Moves:
    """Edges of the chain between states that are met: ``of`` numbers them, NONE for the others;
    ``states`` lists them.

    An end leads from a stable state at a rate (per 1/Λ), an action from an asking state, or from a
    stable one on an arrival. ``action`` is a mode, or the number of modes plus the pool whose queue
    is joined, or NONE for a job that is lost.
    """

    states: Ints
    of: Ints
    stable: Bools
    end_from: Ints
    end_to: Ints
    end_rate: Floats
    act_from: Ints
    act_to: Ints
    action: Ints

    @property
    def on_arrival(self) -> Bools:
        return self.stable[self.act_from]


@dataclass(frozen=True, eq=False)
class Occupancy:
    """A stationary policy and what it is worth in the long run; ``share[e]`` is the probability of
    action e of the moves, ``flow[e]`` how often it is taken per accepted job.

    ``proven_j_per_unit`` is below every policy within the limits (exact arithmetic), None where a
    policy was only evaluated. ``price`` is what a second of mean sojourn more saves, in J per unit.
    """

    j_per_unit: float
    sojourn_s: float
    queue_mean: Floats
    lost: float
    power_w: float
    share: Floats
    flow: Floats
    proven_j_per_unit: float | None = None
    price: float = 0.0


@dataclass(frozen=True, eq=False)
class OccupancyProgramme:
    """The programme of a chain, for any limits."""

    chain: Chain

    @cached_property
    def moves(self) -> Moves:
        return moves_of(self.chain)

    @cached_property
    def _time_weights(self) -> tuple[Floats, Floats, Floats]:
        """Of the stable states that are met: energy in J per unit, jobs in the system in s, and
        waiting jobs per pool.
        """
        chain, at = self.chain, self.moves.states[self.moves.stable]
        energy = chain.power_w[at] / (chain.rate * chain.mean_units)
        return energy, chain.in_system[at] / chain.rate, chain.states[1][:, at].astype(float)

    def minimum(
        self,
        sojourn_s: float | None = None,
        queue_mean: float | None = None,
        max_lost: float = MAX_LOST,
        time_limit_s: float = 120.0,
    ) -> Occupancy | None:
        """Least J per unit with mean sojourn and mean queue of every pool within limits; None where
        no policy keeps them.
        """
        for what, limit in (("sojourn_s", sojourn_s), ("queue_mean", queue_mean)):
            if limit is not None and not limit > 0:
                raise ParameterError(
                    f"{what} is {limit!r}; it must be positive, or None for no limit"
                )
        if not 0 < max_lost < 1:
            raise ParameterError(f"max_lost is {max_lost!r}; it must lie between 0 and 1")
        lp = self._programme(sojourn_s, queue_mean, max_lost)
        found = solve(lp, time_limit_s)
        if found.status == "Infeasible":
            return None
        if found.status != "Optimal" or found.dual is None:
            raise UnsupportedError(
                f"{self.chain.name}: no answer for {lp.num_columns:,} columns ({found.status}); "
                "a smaller room, or a longer time_limit_s"
            )
        moves = self.moves
        stable = int(moves.stable.sum())
        flow = np.maximum(found.primal[stable:], 0.0)
        proof = certificate(lp, found.dual)
        reduced, bits = reduced_costs(lp, proof)
        # In a state that is never met, what costs least in the long run.
        scale = 2.0 ** min(1000, bits + proof.shift)
        share = shares(
            moves, flow, np.array([float(r) for r in (reduced[stable:] / scale).tolist()])
        )
        proven = proven_bound(lp, proof)
        price = (
            float(found.dual[lp.family.index("sojourn")]) / sojourn_s
            if sojourn_s is not None
            else 0.0
        )
        made = self.value(share)
        return Occupancy(
            made.j_per_unit,
            made.sojourn_s,
            made.queue_mean,
            made.lost,
            made.power_w,
            share,
            made.flow,
            None if proven is None else round_down(proven),
            price,
        )

    def greedy(self, value: Floats) -> Floats:
        """The policy that takes, everywhere, the action that leads to the state of least value (by
        number of the chain).
        """
        moves = self.moves
        return shares(moves, np.zeros(len(moves.action)), value[moves.states[moves.act_to]])

    def value(self, share: Floats) -> Occupancy:
        """What a stationary policy is worth, from its stationary distribution."""
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import spsolve

        moves, chain = self.moves, self.chain
        n, stable = len(moves.states), moves.stable
        arrives = moves.on_arrival
        # Rates out of stable states and flows through asking ones: unknowns are times there and
        # flows here.
        source = np.concatenate((moves.end_from, moves.act_from))
        target = np.concatenate((moves.end_to, moves.act_to))
        rate = np.concatenate((moves.end_rate, share))
        out = np.where(
            stable, np.bincount(moves.end_from, weights=moves.end_rate, minlength=n) + 1.0, 1.0
        )
        row, column = np.concatenate((target, np.arange(n))), np.concatenate((source, np.arange(n)))
        value = np.concatenate((rate, -out))
        keep = row != 0  # one balance follows from the others
        total = np.flatnonzero(stable)
        where = (
            np.concatenate((row[keep], np.zeros_like(total))),
            np.concatenate((column[keep], total)),
        )
        matrix = coo_array(
            (np.concatenate((value[keep], np.ones(len(total)))), where), shape=(n, n)
        ).tocsc()
        right = np.zeros(n)
        right[0] = 1.0
        at = np.asarray(spsolve(matrix, right), dtype=float)
        lost = float((at[moves.act_from] * share)[arrives & (moves.action == NONE)].sum())
        time = np.maximum(at[stable], 0.0) / (1.0 - lost)
        energy, system, queue = self._time_weights
        everything, flow = float(time.sum()), at[moves.act_from] * share / (1.0 - lost)
        return Occupancy(
            float(energy @ time), float(system @ time), queue @ time / everything, lost,
            float(energy @ time) * chain.mean_units * chain.rate * (1.0 - lost), share, flow,
        )  # fmt: skip

    def _programme(
        self, sojourn_s: float | None, queue_mean: float | None, max_lost: float
    ) -> LinearProgram:
        moves = self.moves
        energy, system, queue = self._time_weights
        columns, rows = LpColumns(), LpRows()
        most, num = 1.0 / (1.0 - max_lost), int(moves.stable.sum())
        stay = columns.add(num, 0.0, most, energy)
        act = columns.add(len(moves.action), 0.0, most)
        column_of = np.full(len(moves.states), NONE, dtype=np.int64)
        column_of[moves.stable] = stay
        arrives, lost = moves.on_arrival, moves.action == NONE
        out = np.bincount(moves.end_from, weights=moves.end_rate, minlength=len(moves.states)) + 1.0
        here = np.flatnonzero(moves.stable)
        asking = np.flatnonzero(~arrives)
        rows.add(
            "balance", np.zeros(len(moves.states)), (here, stay, out[here]),
            (moves.end_to, column_of[moves.end_from], -moves.end_rate), (moves.act_to, act, -1.0),
            (moves.act_from[asking], act[asking], 1.0), equal=True,
        )  # fmt: skip
        coming = np.flatnonzero(arrives)
        asked = (column_of[moves.act_from[coming]], act[coming], 1.0)
        rows.add("arrivals", np.zeros(num), asked, (np.arange(num), stay, -1.0), equal=True)
        rows.add("accepted", 1.0, (0, act[arrives & ~lost], 1.0), equal=True)
        rows.add("lost", -max_lost / (1.0 - max_lost), (0, act[arrives & lost], -1.0))
        if sojourn_s is not None:
            rows.add("sojourn", -1.0, (0, stay, -system / sojourn_s))
        if queue_mean is not None:
            for each in queue:
                rows.add("queue", 0.0, (0, stay, queue_mean - each))
        return assemble(columns, rows)


def occupancy_bound(
    chain: Chain, sojourn_s: float | None = None, queue_mean: float | None = None
) -> Occupancy | None:
    """The best policy of a chain under limits; None where none keeps them."""
    return OccupancyProgramme(chain).minimum(sojourn_s, queue_mean)


def shares(moves: Moves, flow: Floats, cost: Floats) -> Floats:
    """Probability of each action among those of its state; where nothing flows, the one that costs
    least.
    """
    n = len(moves.states)
    through = np.bincount(moves.act_from, weights=flow, minlength=n)
    met = through > NOISE
    share = np.where(met[moves.act_from], flow / np.where(met, through, 1.0)[moves.act_from], 0.0)
    order = np.lexsort((cost, moves.act_from))
    source = moves.act_from[order]
    best = order[np.concatenate(([True], source[1:] != source[:-1]))]
    best = best[~met[moves.act_from[best]]]
    share[best] = 1.0
    return share


def num_randomised(moves: Moves, flow: Floats, least: float = 1e-5) -> int:
    """States in which a coin is tossed, and in earnest: two actions are each taken once in 1 /
    ``least`` jobs.
    """
    number = np.bincount(moves.act_from[flow > least], minlength=len(moves.states))
    return int((number > 1).sum())


def moves_of(chain: Chain) -> Moves:
    """All edges between states that the empty plant leads to."""
    config, queue = chain.states
    stable, number = chain.asks == NONE, np.arange(chain.num_states)
    rows = config + chain.first[:-1, None]
    ends, acts = [], []
    for m in range(chain.num_modes):
        p, step = int(chain.pool_of[m]), int(chain.radix[chain.pool_of[m]]) * (chain.room + 1)
        running = np.concatenate([each[:, m] for each in chain.counts])[rows[p]]
        s = number[stable & (running > 0)]
        change = chain.after_end[rows[p, s], m] - config[p, s]
        ends.append((s, s + step * change, running[s] * chain.speed[m] / chain.rate))
        fits = chain.after_start[rows[p], m] != NONE
        s = number[fits & (stable | (chain.asks == p))]
        change = chain.after_start[rows[p, s], m] - config[p, s]
        served = np.where(stable[s], 0, chain.radix[p])
        acts.append((s, s + step * change - served, np.full(len(s), m)))
    waits = np.zeros(chain.num_states, dtype=bool)
    for p in range(chain.num_pools):
        joins = stable & (chain.free[rows[p]] == 0) & (queue[p] < chain.room)
        s = number[joins]
        acts.append((s, s + chain.radix[p], np.full(len(s), chain.num_modes + p)))
        waits |= joins | (stable & (chain.free[rows[p]] > 0))
    full = number[stable & ~waits]
    acts.append((full, full, np.full(len(full), NONE)))
    end_from, end_to, rate = (np.concatenate(part) for part in zip(*ends, strict=True))
    act_from, act_to, action = (np.concatenate(part) for part in zip(*acts, strict=True))
    met = _reached(
        chain.num_states, np.concatenate((end_from, act_from)), np.concatenate((end_to, act_to))
    )
    states = np.flatnonzero(met)
    of = np.full(chain.num_states, NONE, dtype=np.int64)
    of[states] = np.arange(len(states))
    e, a = met[end_from], met[act_from]
    order = np.argsort(act_from[a], kind="stable")
    return Moves(
        states, of, stable[states], of[end_from[e]], of[end_to[e]], rate[e],
        of[act_from[a]][order], of[act_to[a]][order], action[a][order],
    )  # fmt: skip


def _reached(number: int, source: Ints, target: Ints) -> Bools:
    """States that the empty plant (state 0) leads to."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = coo_array((np.ones(len(source)), (source, target)), shape=(number, number)).tocsr()
    met = np.zeros(number, dtype=bool)
    met[breadth_first_order(graph, 0, return_predecessors=False)] = True
    return met
