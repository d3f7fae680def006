"""The limits and the seed of one call of ``solve``."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

from optbench.errors import ParameterError


@dataclass(frozen=True)
class Budget:
    """The limits and the seed of a run."""

    time_limit_s: float | None = 60.0
    work_limit: float | None = None
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_limit("time_limit_s", self.time_limit_s, "a number of seconds, such as 10")
        check_limit("work_limit", self.work_limit, "a number, in the solver's own units")
        check_whole("threads", self.threads, 1)
        check_whole("seed", self.seed, 0)


def check_limit(name: str, value: object, expected: str) -> None:
    """Refuse a limit that is neither a positive number nor None."""
    if value is None:
        return
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise ParameterError(f"{name} is {value!r}; it must be {expected}, or None for no limit")
    if not float(value) > 0:
        raise ParameterError(f"{name} is {value!r}; it must be positive, or None for no limit")


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise ParameterError(f"{name} is {value!r}; it must be a whole number")
    if value < least:
        words = "must not be negative" if least == 0 else f"must be at least {least}"
        raise ParameterError(f"{name} is {value!r}; it {words}")
