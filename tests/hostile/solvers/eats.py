"""Takes 30 GB."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Literal

import numpy as np

import optbench as ob

from ._everything import EVERYTHING

SIZE = 30 * 10**9
PART = 50 * 10**6


@dataclass(frozen=True)
class Eats(ob.Solver):
    """Memory: touched part by part, asked for at once, shared between processes, or taken by a
    child.
    """

    how: Literal["touch", "zeros", "bytes", "shared", "child"] = "touch"
    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        held: list[object] = []
        if self.how == "zeros":
            held.append(np.zeros(SIZE // 8))
        if self.how == "bytes":
            held.append(bytearray(SIZE))
        if self.how == "child" and (child := os.fork()):
            os.waitpid(child, 0)
        for _ in range(SIZE // PART):
            if self.how == "shared":
                part = mmap.mmap(-1, PART)
                part.write(b"x" * PART)
                held.append(part)
            else:
                held.append(np.ones(PART // 8))
        return None
