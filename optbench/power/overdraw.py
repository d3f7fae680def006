"""Comparison of fitted laws with the nameplate: a law must not exceed the board power."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optbench.power.profiles import Profile

# Excess from rounding coefficients that were fitted to the board power is ignored.
ROUNDING = 1e-6


class BoardPowerWarning(UserWarning):
    """The law of a profile exceeds the board power."""


@dataclass(frozen=True)
class Overdraw:
    """A kind of work whose power exceeds ``board_w`` from ``from_clock`` on.

    Its highest power is ``watts``, at ``clock``."""

    profile: str
    kind: str
    clock: float
    watts: float
    board_w: float
    from_clock: float

    def __str__(self) -> str:
        since = (
            ""
            if self.from_clock == self.clock
            else f" (exceeded from clock {self.from_clock:g} on)"
        )
        draws = f"{self.kind} draws {self.watts:.4g} W at clock {self.clock:g}"
        return f"profile {self.profile!r}: {draws}, the board has {self.board_w:g} W{since}"


def board_power(profile: Profile) -> tuple[Overdraw, ...]:
    """Kinds of work whose law exceeds the board power at some clock of the profile."""
    found = []
    for kind in profile.kinds:
        watts = {clock: profile.power_w(kind, 1, clock) for clock in profile.clocks}
        over = [clock for clock in profile.clocks if watts[clock] > profile.tdp_w * (1 + ROUNDING)]
        if over:
            worst = max(over, key=lambda clock: watts[clock])
            found.append(Overdraw(profile.name, kind, worst, watts[worst], profile.tdp_w, over[0]))
    return tuple(found)


def warn_of_overdraw(profile: Profile, where: str, stacklevel: int = 3) -> None:
    """Issue a BoardPowerWarning for each kind of work that exceeds the board power.

    ``where`` names the place at which the profile is used."""
    for flag in board_power(profile):
        warnings.warn(f"{where}: {flag}", BoardPowerWarning, stacklevel=stacklevel)
