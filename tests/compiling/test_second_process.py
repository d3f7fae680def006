"""Two processes share the kernels that are to be compiled; what one of them leaves out the other
one does.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil
import pytest

from optbench.compiling import second_process
from tests.compiling.test_kernel_table import said, start

# Two kernels of a second or two each: the second process is given the last one, this one keeps the
# first.
SHARE = """
import sys
from optbench.compiling.kernel_table import KERNELS, are_compiled
from optbench.compiling.second_process import share_of_this_process
mine = list(share_of_this_process(["end_of_run", "site_decisions"]))
print(mine, are_compiled(["end_of_run"]), are_compiled(["site_decisions"]))
"""
# The second process cannot import optbench, as where it is killed: everything is compiled here.
ALONE = """
from optbench.compiling import second_process
from optbench.compiling.kernel_table import are_compiled, prepare
second_process.COMMAND = "raise SystemExit(1)"
prepare(["end_of_run", "site_decisions"])
print(are_compiled(["end_of_run", "site_decisions"]))
"""
# The first process ends at once, while the second one compiles for many seconds.
ORPHAN = """
import os
from optbench.compiling.second_process import share_of_this_process
for name in share_of_this_process(["end_of_run", "pilot_training"]):
    os._exit(0)
"""


def test_the_last_kernel_is_compiled_by_the_second_process(tmp_path: Path) -> None:
    assert said(start(SHARE, OPTBENCH_CACHE=str(tmp_path))) == "['end_of_run'] False True"


@pytest.mark.slow
def test_without_the_second_process_everything_is_compiled_here(tmp_path: Path) -> None:
    assert said(start(ALONE, OPTBENCH_CACHE=str(tmp_path))) == "True"


def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    first = start(ORPHAN, OPTBENCH_CACHE=str(tmp_path), MARKER="orphan-of-a-compiler")
    first.wait(timeout=60)
    give_up = time.monotonic() + 5.0
    while running := _with_marker("orphan-of-a-compiler"):
        assert time.monotonic() < give_up, running
        time.sleep(0.05)


def _with_marker(marker: str) -> list[int]:
    """Return the processes with this variable in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("MARKER") == marker:
                found.append(process.pid)
    return found


def test_one_kernel_or_one_core_needs_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        second_process, "_start", lambda: pytest.fail("a second process was started")
    )
    assert list(second_process.share_of_this_process(["rules"])) == ["rules"]
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert list(second_process.share_of_this_process(["rules", "sites"])) == ["rules", "sites"]
