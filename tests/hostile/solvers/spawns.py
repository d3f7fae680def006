"""Starts processes."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Literal

import optbench as ob

from ._everything import EVERYTHING
from ._honest import honest

# A bomb that does not go off all the way, should nothing stop it.
MOST = 2000


@dataclass(frozen=True)
class Spawns(ob.Solver):
    """A child in a session of its own that outlives its parent, a fork bomb, threads without number
    or end, busy helpers.
    """

    how: Literal["orphan", "bomb", "threads", "thread", "busy", "pool", "lasting"] = "orphan"
    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        if self.how == "orphan":
            _orphan()
        if self.how == "lasting":
            _lasting()
        if self.how == "bomb":
            _bomb()
        if self.how in ("threads", "thread"):
            for _ in range(1000 if self.how == "threads" else 1):
                threading.Thread(target=time.sleep, args=(300,)).start()
        if self.how == "busy":
            children = [child for _ in range(4) if (child := _spinning())]
            for child in children:
                os.waitpid(child, 0)
        if self.how == "pool":
            _pool()
        return honest(instance)


def _orphan() -> None:
    """A grandchild that no parent knows, in its own session, deaf and silent."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 1024)
            time.sleep(300)
        os._exit(0)


def _lasting() -> None:
    """A child in its own session that can be told by its command line, and a parent that
    goes on.
    """
    code = "import time; time.sleep(300)  # sleeping in its own session"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True).wait()


def _bomb() -> None:
    """Every process forks on and on, until there have been MOST; they are counted in memory that
    they share.
    """
    counter = mmap.mmap(-1, 8)
    while True:
        count = struct.unpack("q", counter[:8])[0]
        if count >= MOST:
            time.sleep(300)
        counter[:8] = struct.pack("q", count + 1)
        if os.fork() == 0:
            os.setsid()


def _spinning() -> int:
    """A child that uses a processor."""
    child = os.fork()
    while child == 0:
        pass
    return child


def _pool() -> None:
    """Helpers as honest solvers have them, never told to end."""
    import multiprocessing

    pool = multiprocessing.get_context("fork").Pool(2)
    assert pool.map(abs, [-1, -2]) == [1, 2]
