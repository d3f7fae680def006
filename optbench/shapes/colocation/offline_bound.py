"""The offline bound of a whole trace: an LP over types of jobs, proved in whole numbers.

STUB
"""

from __future__ import annotations

from fractions import Fraction

from optbench.errors import OptbenchError
from optbench.model.result import Bound
from optbench.shapes.colocation.colocation_data import Colocation, Ints
from optbench.shapes.colocation.offline_certificate import (
    OfflineCertificate,
    read_certificate,
    write_certificate,
)
from optbench.shapes.colocation.offline_demand import even_edges, total_wait_s
from optbench.shapes.colocation.offline_master import OfflineMaster
from optbench.shapes.colocation.offline_proof import proven_sum
from optbench.shapes.colocation.offline_relaxation import in_whole_numbers, relaxation
from optbench.shapes.milp.milp_shape import outward

FREE, HELD = "offline_lp", "offline_lp_held"
# The evaluation of energy rounds a few sums of floats; the bound is lowered by this share.
EVALUATION = Fraction(1, 1 << 44)
NUM_BINS, GROUPS = 24, 1


def offline_bounds(
    data: Colocation,
    level: int,
    held_shortfall_s: float | None,
    time_limit_s: float,
    num_bins: int = NUM_BINS,
    groups: int = GROUPS,
) -> list[Bound]:
    """Return certified bounds of a level, best first: at level 1 with and without held shortfall.

    ``level`` 0 is shortfall, 1 energy. More bins, and more classes per type, take more time."""
    held = [None] if level == 0 or held_shortfall_s is None else [held_shortfall_s, None]
    edges = even_edges(data, num_bins)
    found = [_bound(data, level, each, edges, groups, time_limit_s / len(held)) for each in held]
    return sorted(found, key=lambda bound: -bound.value)


def _bound(
    data: Colocation,
    level: int,
    held_shortfall_s: float | None,
    edges: Ints,
    groups: int,
    time_limit_s: float,
) -> Bound:
    floats = relaxation(data, edges, groups, held_shortfall_s)
    counted = level == 0 or held_shortfall_s is not None
    master = OfflineMaster(floats, level == 1, counted, time_limit_s)
    _, multipliers = master.multipliers()
    certificate = write_certificate(
        OfflineCertificate(level, held_shortfall_s, groups, edges, multipliers)
    )
    return prove_offline(data, level, held_shortfall_s, certificate)


def prove_offline(
    data: Colocation, level: int, held_shortfall_s: float | None, certificate: str
) -> Bound:
    """Prove a bound again from the instance and the multipliers of a certificate."""
    given = read_certificate(certificate, data)
    if given.level != level:
        raise OptbenchError(
            f"the certificate is of level {given.level}; the instance is at {level}"
        )
    if given.held_shortfall_s is not None and (
        held_shortfall_s is None or held_shortfall_s > given.held_shortfall_s
    ):
        raise OptbenchError(
            f"the certificate holds shortfall_s at {given.held_shortfall_s!r}; the instance "
            f"{'does not hold it' if held_shortfall_s is None else f'at {held_shortfall_s!r}'}"
        )
    whole = in_whole_numbers(relaxation(data, given.edges, given.groups, given.held_shortfall_s))
    proven = proven_sum(whole, given.multipliers, level == 1)
    source = FREE if given.held_shortfall_s is None else HELD
    value = _shortfall(data, proven) if level == 0 else _energy(data, proven)
    return Bound(value, source, "exact-lp", certificate=certificate)


def _shortfall(data: Colocation, beyond_waiting: Fraction) -> float:
    """Waiting for the first epoch, and what the LP proves beyond it, less its rounding."""
    waiting = total_wait_s(data)
    horizon_s = Fraction(data.horizon_epochs * data.epoch_s)
    terms = 4 * data.jobs.count * (data.horizon_epochs + 1)
    value = (Fraction(waiting) + beyond_waiting - terms * horizon_s / (1 << 52)) * (1 - EVALUATION)
    return max(waiting, outward(value, "min"))


def _energy(data: Colocation, busy_j: Fraction) -> float:
    """Sleep of all GPUs up to the horizon, and what the LP proves beyond it."""
    sleep, _, _ = data.watts()
    counts = [each.count for each in data.gpu_types]
    asleep_w = sum((Fraction(n) * Fraction(w) for n, w in zip(counts, sleep.tolist())), Fraction(0))
    asleep = asleep_w * data.horizon_epochs * Fraction(data.epoch_s)
    return outward((asleep + max(busy_j, Fraction(0))) * (1 - EVALUATION), "min")
