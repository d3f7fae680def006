"""How many ticks an interrupted task still takes, exactly: the compiled twin of
``model.task_progress.ticks_left``.

With l_j ticks done, and saved, in modes in which the whole takes D_j, and D in the mode in which it
goes on, the rest takes

    the least whole L ≥ 0 with  L / D + Σ_j l_j / D_j ≥ 1,
    that is  L Q + D S ≥ D Q,   Q = Π_j D_j,   S = Σ_j l_j Π_{i≠j} D_i.

Parts of one length D_j are added up first. Where every part ran at D, L = D − Σ l_j; where floats
tell on which side of a whole number D (1 − Σ l_j / D_j) lies, they do; else both sides are computed
in limbs of 26 bits, as many as the product has.
"""

from __future__ import annotations

import math

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Ints
from optbench.sim.kernel.accounts import share_of
from optbench.sim.kernel.plant import Plant
from optbench.sim.kernel.spans import duration
from optbench.sim.kernel.state import NONE, NUM_PARTS, State

LIMB_BITS = 26
LIMB = 1 << LIMB_BITS


@njit(cache=True)
def ticks_left(plant: Plant, state: State, task: int, mode: int) -> float:
    """Return the ticks until a task is complete in a mode, after its finished parts."""
    whole, part = duration(plant, task, mode), state.last_part[task]
    if part == NONE or whole == 0.0:
        return whole
    count = 0
    while part != NONE:
        count += 1
        part = state.part_before[part]
    lengths, durations, found = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), 0
    part = state.last_part[task]
    while part != NONE:
        length = saved_ticks(plant, task, state.part_end[part] - state.part_start[part])
        if length > 0:
            whole_part = int(duration(plant, task, state.part_mode[part]))
            found = add_part(lengths, durations, found, length, whole_part)
        part = state.part_before[part]
    if found == 0:
        return whole
    return float(least_length(lengths[:found], durations[:found], int(whole)))


@njit(cache=True)
def saved_ticks(plant: Plant, task: int, length: float) -> int:
    """Return how many of a finished part's ticks count: those before its last checkpoint."""
    every = plant.checkpoint[task]
    if every == 0.0:
        return int(length)
    return 0 if every == math.inf else int(length) // int(every) * int(every)


@njit(cache=True)
def record_part(
    plant: Plant, state: State, task: int, mode: int, began: float, ended: float
) -> None:
    """Record the work of an interrupted task."""
    k = state.tally[NUM_PARTS]
    state.part_task[k], state.part_mode[k], state.part_before[k] = task, mode, state.last_part[task]
    state.part_start[k], state.part_end[k] = began, ended
    state.last_part[task] = k
    state.tally[NUM_PARTS] = k + 1
    saved = float(saved_ticks(plant, task, ended - began))
    left = state.remaining[task] - plant.units[task] * share_of(plant, task, mode, saved)
    state.remaining[task] = max(left, 0.0)


@inner()
def add_part(lengths: Ints, durations: Ints, found: int, length: int, whole: int) -> int:
    """Add a part to those of the same duration; return the number of different durations."""
    for j in range(found):
        if durations[j] == whole:
            lengths[j] += length
            return found
    lengths[found], durations[found] = length, whole
    return found + 1


@inner()
def least_length(lengths: Ints, durations: Ints, whole: int) -> int:
    """Return the least L of the module's docstring; durations are positive and all different."""
    count, share = len(lengths), 0.0
    if count == 1 and durations[0] == whole:
        return max(0, whole - lengths[0])
    for j in range(count):
        share += lengths[j] / durations[j]
    about = whole * (1.0 - share)
    # Each quotient, each sum and the product are rounded by at most 2^-53 of their value.
    spread = whole * (count + 4.0) * 2.0**-52 * max(1.0, share)
    if math.ceil(about - spread) == math.ceil(about + spread):
        return max(0, math.ceil(about))
    left, right, scratch = sides(lengths, durations, whole)
    length = max(0, math.ceil(about))
    while length > 0 and reaches(left, right, scratch, length - 1):
        length -= 1
    while not reaches(left, right, scratch, length):
        length += 1
    return length


@inner()
def sides(lengths: Ints, durations: Ints, whole: int) -> tuple[Ints, Ints, Ints]:
    """Return Q, D Q − D S (zero where that is negative), and room for one more product, in
    limbs.
    """
    count = len(durations)
    limbs = 2 * (count + 2) + 1
    product, total = np.zeros(limbs, dtype=np.int64), np.zeros(limbs, dtype=np.int64)
    term = np.zeros(limbs, dtype=np.int64)
    product[0] = 1
    for j in range(count):
        multiply_limbs(product, durations[j])
    for j in range(count):
        term[:] = 0
        term[0] = 1
        multiply_limbs(term, lengths[j])
        for i in range(count):
            if i != j:
                multiply_limbs(term, durations[i])
        add_limbs(total, term)
    need = product.copy()
    if less(total, need):
        subtract(need, total)
        multiply_limbs(need, whole)
    else:
        need[:] = 0
    return product, need, term


@inner()
def reaches(product: Ints, need: Ints, scratch: Ints, length: int) -> bool:
    """Whether L Q ≥ D Q − D S."""
    # Assigning slices would compile an error message for unequal lengths, which takes a second.
    for k in range(len(product)):
        scratch[k] = product[k]
    multiply_limbs(scratch, length)
    return not less(scratch, need)


@inner()
def multiply_limbs(number: Ints, factor: int) -> None:
    """Multiply a number in limbs, the lowest first, in place by a factor below 2^53."""
    low, high = factor & (LIMB - 1), factor >> LIMB_BITS
    carry, before = 0, 0
    for k in range(len(number)):
        limb = number[k]
        value = limb * low + before * high + carry
        before = limb
        number[k] = value & (LIMB - 1)
        carry = value >> LIMB_BITS


@inner()
def add_limbs(number: Ints, other: Ints) -> None:
    carry = 0
    for k in range(len(number)):
        value = number[k] + other[k] + carry
        number[k] = value & (LIMB - 1)
        carry = value >> LIMB_BITS


@inner()
def subtract(number: Ints, other: Ints) -> None:
    """number ← number − other, which is not larger."""
    borrow = 0
    for k in range(len(number)):
        value = number[k] - other[k] - borrow
        borrow = 1 if value < 0 else 0
        number[k] = value + borrow * LIMB


@inner()
def less(number: Ints, other: Ints) -> bool:
    for k in range(len(number) - 1, -1, -1):
        if number[k] != other[k]:
            return bool(number[k] < other[k])
    return False
