"""Memory of a tree: what is shared with the slot is nobody's, what is shared between processes
counts once.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from optbench.execute import memory
from optbench.execute.memory import TreeMemory, machine_mb
from optbench.sandbox.process_tree import ProcessUsage


def test_one_process_counts_beyond_the_baseline() -> None:
    looks = TreeMemory(baseline_mb=100.0, limit_mb=50.0)
    assert looks.of([ProcessUsage(1, 0.0, 170.0, 1)]) == 70.0
    assert looks.of([ProcessUsage(1, 0.0, 90.0, 1)]) == 0.0


def test_several_processes_below_the_limit_are_not_looked_at_closely() -> None:
    # 130 + 120 - 100 is the most that it can be; 30 + 20 what it is if they share what they began
    # with.
    assert (
        TreeMemory(100.0, 200.0).of(
            [ProcessUsage(1, 0.0, 130.0, 1), ProcessUsage(2, 0.0, 120.0, 1)]
        )
        == 50.0
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_shared_pages_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child shares 100 MB of its parent: together they have them once, though each maps them."""
    monkeypatch.setattr(memory, "REST_S", 0.0)
    block = bytearray(os.urandom(1)) * (100 << 20)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        found = TreeMemory(0.0, 10.0).of(
            [ProcessUsage(os.getpid(), 0.0, 150.0, 1), ProcessUsage(child, 0.0, 150.0, 1)]
        )
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    mine = Path("/proc/self/smaps_rollup").read_text()
    own_mb = (
        sum(
            int(line.split()[1])
            for line in mine.splitlines()
            if line.startswith(("Pss_Anon", "Pss_Shmem"))
        )
        / 1024
    )
    assert len(block) == 100 << 20
    assert found == pytest.approx(own_mb, rel=0.1)


def test_the_machine_has_memory() -> None:
    assert 500 < machine_mb() < 1e8
