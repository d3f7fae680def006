"""Never ends."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Literal

import optbench as ob

from ._everything import EVERYTHING


@dataclass(frozen=True)
class Loops(ob.Solver):
    """An infinite loop: in Python, in compiled code that holds the interpreter, or deaf to
    signals.
    """

    how: Literal["python", "native", "deaf"] = "python"
    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        if self.how == "native":
            re.match(r"(a|aa)+$", "a" * 200 + "b")  # exponential backtracking
        if self.how == "deaf":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
                signal.signal(number, signal.SIG_IGN)
        while True:
            pass
