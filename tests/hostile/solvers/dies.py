"""Ends its process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from typing import Literal

import optbench as ob

from ._everything import EVERYTHING


@dataclass(frozen=True)
class Dies(ob.Solver):
    """A segmentation fault, an abort, an exit that looks like success, an interrupt that nobody
    sent, endless recursion.
    """

    how: Literal[
        "segfault", "abort", "os_exit", "sys_exit", "interrupt", "recursion", "exception"
    ] = "segfault"
    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        run.report_message("about to die")
        print("about to die")
        if self.how == "segfault":
            ctypes.string_at(0)
        if self.how == "abort":
            os.kill(os.getpid(), signal.SIGABRT)
        if self.how == "os_exit":
            os._exit(0)
        if self.how == "sys_exit":
            sys.exit(0)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "recursion":
            return self.solve(instance, run)
        raise RuntimeError("an exception like any other")
