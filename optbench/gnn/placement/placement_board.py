"""A partial placement, and what one more move costs: compiled code that all methods share.

A board holds the loads of the devices for a placement in which parts may still be missing: their
device is -1. With a = the device of part p, and out_pe, in_pe the rows that p sends to device e and
receives from it, moving p to b changes the rows between devices as

    R_ae −= out_pe,  R_ea −= in_pe   for e ≠ a        (a missing part leaves nothing)
    R_be += out_pe,  R_eb += in_pe   for e ≠ b

where in the pair (a, b) the rows of p with its former companions take the other direction. A move
is priced in O(D² + D W), and made in O(P + D²).

The price of a board is its step, plus ``blend`` × the mean load over devices and windows, plus
``byte_s`` for each byte above the memory of a device.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.gnn.placement.placement_table import PlacementTable
from optbench.shapes.gnn_training.training_data import Floats, Ints

MISSING = -1
# A byte above the memory costs as much as the whole work divided by this share of the memory.
MEMORY_SHARE = 0.01


class BoardCosts(NamedTuple):
    """The arrays of a table, in the order in which the compiled code reads them."""

    work: Floats  # (P, D, W)
    rows: Floats  # (P, P)
    meeting: Floats  # (D, D)
    row: Floats  # (D, D)
    kept: Floats  # (P)
    room: Floats  # (D), inf where there is no limit
    received: float
    byte_s: float


class Board(NamedTuple):
    """A partial placement: loads of work, rows between devices, rows of each part."""

    device: Ints  # (P)
    work: Floats  # (D, W)
    between: Floats  # (D, D)
    out: Floats  # (P, D)
    into: Floats  # (P, D)
    talk: Floats  # (D)
    kept: Floats  # (D)
    scratch: Floats  # (3, D): talk after a move, and the rows of the two devices


def costs_of(table: PlacementTable) -> BoardCosts:
    """Return the arrays of a table."""
    room = table.memory_bytes - table.parameter_bytes
    limited = np.isfinite(room)
    byte_s = 0.0
    if limited.any():
        least = max(1.0, float(np.abs(room[limited]).min()))
        byte_s = float(table.work_s.mean(axis=2).max(axis=1).sum()) / (MEMORY_SHARE * least)
    return BoardCosts(
        np.ascontiguousarray(table.work_s),
        np.ascontiguousarray(table.rows),
        table.meeting_s,
        table.row_s,
        np.ascontiguousarray(table.kept_bytes),
        np.where(limited, room, np.inf),
        table.received_bytes,
        byte_s,
    )


@njit()
def empty_board(costs: BoardCosts) -> Board:
    """Return the board without a part."""
    parts, devices, windows = costs.work.shape
    return Board(
        np.full(parts, -1, np.int64),
        np.zeros((devices, windows)),
        np.zeros((devices, devices)),
        np.zeros((parts, devices)),
        np.zeros((parts, devices)),
        np.zeros(devices),
        np.zeros(devices),
        np.zeros((3, devices)),
    )


@njit()
def board_of(costs: BoardCosts, device: Ints) -> Board:
    """Return the board of a placement."""
    board: Board = empty_board(costs)
    for p in range(len(device)):
        if device[p] >= 0:
            make_move(costs, board, p, device[p])
    return board


@inner()
def pair_s(costs: BoardCosts, d: int, e: int, most: float) -> float:
    """Seconds of device d for exchanging at most so many rows in a direction with device e."""
    return costs.meeting[d, e] + costs.row[d, e] * most if most > 0.5 else 0.0


@njit()
def price_moved_talk(costs: BoardCosts, board: Board, p: int, b: int) -> None:
    """Write into ``scratch[0]`` the talk of each device once part p is on device b."""
    devices, a = len(board.talk), board.device[p]
    talk, between, out, into = board.scratch[0], board.between, board.out, board.into
    for d in range(devices):
        talk[d] = board.talk[d]
    if a == b:
        return
    for e in range(devices):
        if e != a and e != b:
            if a >= 0:
                there, back = between[a, e] - out[p, e], between[e, a] - into[p, e]
                change_talk(costs, board, a, e, there, back)
            there, back = between[b, e] + out[p, e], between[e, b] + into[p, e]
            change_talk(costs, board, b, e, there, back)
    if a >= 0:
        there = between[a, b] - out[p, b] + into[p, a]
        back = between[b, a] - into[p, b] + out[p, a]
        change_talk(costs, board, a, b, there, back)


@inner()
def change_talk(costs: BoardCosts, board: Board, d: int, e: int, there: float, back: float) -> None:
    """Add to ``scratch[0]`` what other rows between two devices change; links may differ by
    direction.
    """
    talk, most = board.scratch[0], max(there, back)
    before = max(board.between[d, e], board.between[e, d])
    talk[d] += pair_s(costs, d, e, most) - pair_s(costs, d, e, before)
    talk[e] += pair_s(costs, e, d, most) - pair_s(costs, e, d, before)


@njit()
def move_price(costs: BoardCosts, board: Board, p: int, b: int, blend: float) -> float:
    """Return the price of the board once part p is on device b; talk is left in ``scratch[0]``."""
    price_moved_talk(costs, board, p, b)
    devices, windows = board.work.shape
    a, talk = board.device[p], board.scratch[0]
    total, whole = 0.0, 0.0
    for w in range(windows):
        longest = 0.0
        for d in range(devices):
            load = board.work[d, w] + talk[d]
            if d == b and a != b:
                load += costs.work[p, b, w]
            elif d == a and a != b:
                load -= costs.work[p, a, w]
            whole += load
            if load > longest:
                longest = load
        total += longest
    price: float = total / windows + blend * whole / (windows * devices)
    if costs.byte_s > 0.0:
        price += costs.byte_s * excess_bytes(costs, board, p, b)
    return price


@njit()
def excess_bytes(costs: BoardCosts, board: Board, p: int, b: int) -> float:
    """Return the bytes above the memories once part p is on device b."""
    devices, a, over = len(board.talk), board.device[p], 0.0
    for d in range(devices):
        received = 0.0
        for e in range(devices):
            if e != d:
                received += board.between[e, d]
        kept = board.kept[d]
        if a != b:
            if d == b:
                kept += costs.kept[p]
                # Rows that p needs arrive here; those that its companions need come no more.
                for e in range(devices):
                    if e != b:
                        received += board.into[p, e]
                if a >= 0:
                    received -= board.out[p, b]
            elif d == a:
                kept -= costs.kept[p]
                for e in range(devices):
                    if e != a:
                        received -= board.into[p, e]
                received += board.out[p, a]
            elif a < 0:
                received += board.out[p, d]
        over += max(0.0, kept + costs.received * received - costs.room[d])
    return over


@njit()
def board_price(costs: BoardCosts, board: Board, blend: float) -> float:
    """Return the price of the board as it is."""
    return move_price(costs, board, 0, board.device[0], blend) if len(board.device) else 0.0


@njit()
def make_move(costs: BoardCosts, board: Board, p: int, b: int) -> None:
    """Put part p on device b, or take it away (b = -1)."""
    parts, devices = board.out.shape
    windows, a = board.work.shape[1], board.device[p]
    if a == b:
        return
    if a >= 0:
        shift_part(costs, board, p, a, -1.0)
        for w in range(windows):
            board.work[a, w] -= costs.work[p, a, w]
        board.kept[a] -= costs.kept[p]
    if b >= 0:
        shift_part(costs, board, p, b, 1.0)
        for w in range(windows):
            board.work[b, w] += costs.work[p, b, w]
        board.kept[b] += costs.kept[p]
    board.device[p] = b
    for q in range(parts):
        sent, got = costs.rows[q, p], costs.rows[p, q]
        if sent > 0.0 or got > 0.0:
            if a >= 0:
                board.out[q, a] -= sent
                board.into[q, a] -= got
            if b >= 0:
                board.out[q, b] += sent
                board.into[q, b] += got
    for d in range(devices):
        board.talk[d] = 0.0
        for e in range(devices):
            if e != d:
                board.talk[d] += pair_s(costs, d, e, max(board.between[d, e], board.between[e, d]))


@inner()
def shift_part(costs: BoardCosts, board: Board, p: int, d: int, sign: float) -> None:
    """Add the rows of part p on device d to those between devices, or take them away."""
    for e in range(board.between.shape[0]):
        if e != d:
            board.between[d, e] += sign * board.out[p, e]
            board.between[e, d] += sign * board.into[p, e]
