"""Functions that tests have workers call; they are imported by name in other processes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from optbench.errors import ParameterError


@dataclass
class Purse:
    """A place whose content calls may change."""

    content: int


def purse(content: int) -> Purse:
    return Purse(content)


def times(place: Purse, factor: int) -> int:
    return place.content * factor


def put_in(place: Purse, more: int) -> int:
    place.content += more
    return place.content


def refuse_three(place: Purse, number: int) -> int:
    if number == 3:
        raise ParameterError("number is 3; it must be another")
    return number


def end_once(place: Purse, item: tuple[str, int]) -> int:
    """Add, but end the worker of the call with the number 3 where it is the first of its kind."""
    marker, more = item
    if more == 3 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return put_in(place, more)


def number_of(place: Purse, item: tuple[str, int]) -> int:
    """The number of an item, whose call ends its worker once where that is 3."""
    return end_once(purse(0), item)


def end_always(place: Purse, number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number
