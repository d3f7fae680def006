"""Reaches beyond its folder."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import optbench as ob

from ._everything import EVERYTHING
from ._honest import honest

How = Literal[
    "open",
    "append",
    "truncate",
    "rename",
    "remove",
    "link",
    "symlink",
    "chmod",
    "kill",
    "close",
    "flood",
]


@dataclass(frozen=True)
class Trespasses(ob.Solver):
    """Files of others (``victim``, a folder that holds results.jsonl), its parent, its own files,
    its output.
    """

    how: How = "open"
    victim: str = "/nowhere"
    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        schedule = honest(instance)
        folder, results, mine = (
            Path(self.victim),
            Path(self.victim) / "results.jsonl",
            Path(os.environ["TMPDIR"]) / "mine",
        )
        mine.write_text("may be written")
        if self.how == "open":
            (folder / "new").write_text("trespassed")
        elif self.how == "append":
            with results.open("a") as file:
                file.write("{}\n")
        elif self.how == "truncate":
            os.truncate(results, 0)
        elif self.how == "rename":
            mine.rename(folder / "renamed")
        elif self.how == "remove":
            results.unlink()
        elif self.how == "link":
            os.link(results, mine.with_name("linked"))
        elif self.how == "symlink":
            mine.with_name("there").symlink_to(folder)
            (mine.with_name("there") / "results.jsonl").write_text("trespassed")
        elif self.how == "chmod":
            results.chmod(0)
            if results.stat().st_mode & 0o777:
                raise PermissionError("the mode has not changed")
        elif self.how == "kill":
            for _ in range(3):
                os.kill(os.getppid(), signal.SIGKILL)
        elif self.how == "close":
            os.closerange(0, 1 << 16)
        else:
            for _ in range(5_000):
                sys.stdout.write("flood " * 20_000)
        return schedule
