"""Allocation as a Markov decision process, in compiled code: states, rewards and whole episodes.

Parts are placed one after another. The state is the board with its part p at hand; the action is
the device d of p; transitions follow from the table, whose work holds the measured history of
speeds. With T the step of a perfectly balanced board without talk,

    reward = −(increase of the step + λ × increase of the mean talk of the devices) / T

so that rewards add up to −(step − reduce + λ × talk) / T of the whole placement.

``FEATURES`` describe a state and an action: utilisations, bandwidths and costs of communication,
as shares of T, increases times ``SMALL``. A network scores them, with embeddings a_p of the part
and b_d of the device:

    score_pd = skip · f + w · relu(relu(a_p + b_d + F f) M + m)

An episode takes the device of the greatest score + ``heat`` × a Gumbel variable, which draws from
softmax(score / heat); heat 0 takes the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optbench.compiling.compiled import inner, njit
from optbench.gnn.placement.placement_board import (
    Board,
    BoardCosts,
    empty_board,
    make_move,
    price_moved_talk,
)
from optbench.gnn.placement.placement_search import uniform
from optbench.shapes.gnn_training.training_data import Ints

Singles = NDArray[np.float32]
FEATURES = (
    "increase of the step",
    "step after it",
    "mean load of the device after it",
    "longest load of the device after it",
    "talk of the device after it",
    "increase of the talk of the device",
    "increase of the talk of the others",
    "work of the part on the device",
    "share of windows in which the device is the last",
    "mean load before it, below the step",
    "share of the part's rows that stay on the device",
    "share of the part's rows with parts not yet placed",
    "share of work not yet placed",
    "whether the device is in use",
    "seconds of a row of the device, over the mean",
    "share of the speed of all devices",
    "worst window of the device, over its mean",
    "talk of the part if it were alone",
    "room left in the memory after it",
    "work not yet placed that the device would take",
)
# Increases are small beside what they add to; as features they are multiplied by this.
SMALL = 10.0
# The columns that the tuned rule adds up, which is where training starts.
INCREASE, OWN_TALK, TALK_OF_OTHERS = 0, 5, 6


class HeadWeights(NamedTuple):
    """The part of the network that runs in every step; embeddings are of one instance."""

    part: Singles  # (P, H)
    device: Singles  # (D, H)
    first: Singles  # (F, H)
    second: Singles  # (H, H)
    bias: Singles  # (H)
    last: Singles  # (H)
    skip: Singles  # (F)


class Episodes(NamedTuple):
    """Placements of K episodes, in the order of the parts: what was seen, done and earned."""

    device: Ints  # (K, P) by part
    action: Ints  # (K, P) by step
    reward: Singles  # (K, P) by step
    seen: Singles  # (K, P, D, F) by step


class FeatureScales(NamedTuple):
    """What features are relative to."""

    step: float
    part_talk: Singles  # (P)
    part_rows: Singles  # (P)
    row: Singles  # (D)
    speed: Singles  # (D)
    worst: Singles  # (D)
    work: float


@njit()
def scales_of(costs: BoardCosts) -> FeatureScales:
    """Return the scales of a table."""
    parts, devices, windows = costs.work.shape
    total = np.zeros((devices, windows))
    for p in range(parts):
        total += costs.work[p]
    step, speed = 0.0, np.zeros(devices, np.float32)
    for w in range(windows):
        rate = 0.0
        for d in range(devices):
            rate += 1.0 / total[d, w]
        step += 1.0 / rate / windows
        for d in range(devices):
            speed[d] += 1.0 / total[d, w] / rate / windows
    worst, row = np.ones(devices, np.float32), np.ones(devices, np.float32)
    for d in range(devices):
        worst[d] = total[d].max() / total[d].mean()
    if devices > 1:
        mean = costs.row.sum() / (devices * (devices - 1))
        for d in range(devices):
            row[d] = costs.row[d].sum() / (devices - 1) / max(mean, 1e-300)
    part_talk, part_rows = np.zeros(parts, np.float32), np.zeros(parts, np.float32)
    pairs = max(1, devices * (devices - 1))
    seconds, meeting = costs.row.sum() / pairs, costs.meeting.sum() / pairs
    for p in range(parts):
        most, met = 0.0, 0.0
        for q in range(parts):
            most += max(costs.rows[p, q], costs.rows[q, p])
            met += 1.0 if costs.rows[p, q] + costs.rows[q, p] > 0 else 0.0
            part_rows[p] += costs.rows[p, q] + costs.rows[q, p]
        part_talk[p] = (seconds * most + meeting * min(met, devices - 1.0)) / step
    return FeatureScales(step, part_talk, part_rows, row, speed, worst, total.sum())


@njit()
def play(
    costs: BoardCosts,
    order: Ints,
    head: HeadWeights,
    talk_weight: float,
    heat: float,
    given: Ints,
    episodes: int,
    seed: int,
) -> Episodes:
    """Play episodes by the network, or those whose actions are ``given`` (by part; else empty)."""
    parts, devices = costs.work.shape[:2]
    width, scales = head.first.shape[0], scales_of(costs)
    word = np.full(1, seed, np.int64)
    found = Episodes(
        np.zeros((episodes, parts), np.int64),
        np.zeros((episodes, parts), np.int64),
        np.zeros((episodes, parts), np.float32),
        np.zeros((episodes, parts, devices, width), np.float32),
    )
    hidden = np.zeros((2, len(head.last)), np.float32)
    for k in range(episodes):
        board = empty_board(costs)
        left, before, talked = scales.work, 0.0, 0.0
        for t in range(parts):
            p = order[t]
            seen = found.seen[k, t]
            left -= costs.work[p].sum()
            now = observe(costs, scales, board, p, left, seen)
            best, most = 0, -np.inf
            if len(given):
                best = given[p]
            else:
                for d in range(devices):
                    score = score_of(head, p, d, seen[d], hidden)
                    if heat > 0.0:
                        score -= heat * np.log(-np.log(uniform(word) + 1e-300))
                    if score > most:
                        best, most = d, score
            make_move(costs, board, p, best)
            found.device[k, p] = found.action[k, t] = best
            after = now + seen[best, 0] / SMALL * scales.step
            talk = board.talk.mean()
            found.reward[k, t] = -(after - before + talk_weight * (talk - talked)) / scales.step
            before, talked = after, talk
    return found


@inner()
def score_of(head: HeadWeights, p: int, d: int, seen: Singles, hidden: Singles) -> float:
    """Return the score of one action."""
    size = len(head.last)
    one, two = hidden[0], hidden[1]
    for h in range(size):
        one[h] = head.part[p, h] + head.device[d, h]
        two[h] = head.bias[h]
    score = np.float32(0.0)
    for f in range(len(seen)):
        x = seen[f]
        score += x * head.skip[f]
        for h in range(size):
            one[h] += x * head.first[f, h]
    for h in range(size):
        x = one[h]
        if x > 0:
            for g in range(size):
                two[g] += x * head.second[h, g]
    for h in range(size):
        if two[h] > 0:
            score += two[h] * head.last[h]
    return float(score)


@inner()
def observe(
    costs: BoardCosts, scales: FeatureScales, board: Board, p: int, left: float, seen: Singles
) -> float:
    """Write the features of all devices for part p; return the step of the board as it is."""
    devices, windows = board.work.shape
    now, unit, waiting, talked = 0.0, scales.step, 0.0, board.talk.sum()
    for w in range(windows):
        longest = 0.0
        for d in range(devices):
            longest = max(longest, board.work[d, w] + board.talk[d])
        now += longest / windows
    for d in range(devices):
        waiting += board.out[p, d] + board.into[p, d]
    rows = max(1.0, scales.part_rows[p])
    share = left / scales.work
    for d in range(devices):
        price_moved_talk(costs, board, p, d)
        talk, total = board.scratch[0], board.scratch[0].sum()
        step, mean, worst, last, own = 0.0, 0.0, 0.0, 0.0, 0.0
        for w in range(windows):
            load = board.work[d, w] + costs.work[p, d, w] + talk[d]
            own += costs.work[p, d, w] / windows
            longest = load
            for e in range(devices):
                if e != d:
                    longest = max(longest, board.work[e, w] + talk[e])
            if load >= longest:
                last += 1.0 / windows
            step += longest / windows
            mean += load / windows
            worst = max(worst, load)
        f = seen[d]
        f[0] = SMALL * (step - now) / unit
        f[1] = step / unit
        f[2] = mean / unit
        f[3] = worst / unit
        f[4] = talk[d] / unit
        f[5] = SMALL * (talk[d] - board.talk[d]) / unit
        f[6] = SMALL * (total - talked) / unit - f[5]
        f[7] = own / unit
        f[8] = last
        f[9] = (now - (mean - own - talk[d] + board.talk[d])) / unit
        f[10] = (board.out[p, d] + board.into[p, d]) / rows
        f[11] = 1.0 - waiting / rows
        f[12] = share
        f[13] = 1.0 if board.kept[d] > 0 or board.work[d, 0] > 0 else 0.0
        f[14] = scales.row[d]
        f[15] = scales.speed[d]
        f[16] = scales.worst[d]
        f[17] = scales.part_talk[p]
        f[18] = room_left(costs, board, p, d)
        f[19] = share + mean / unit
    return now


@inner()
def room_left(costs: BoardCosts, board: Board, p: int, d: int) -> float:
    """The share of the memory that is left, from -1 to 1; 1 where there is no limit."""
    if not np.isfinite(costs.room[d]):
        return 1.0
    kept: float = board.kept[d] + costs.kept[p]
    for e in range(len(board.talk)):
        if e != d:
            kept += costs.received * (board.between[e, d] + board.into[p, e])
    left: float = max(-1.0, 1.0 - kept / max(1.0, costs.room[d]))
    return left
