"""Searches on two Ray nodes: the trials of a search at home, none lost or doubled when a worker is
killed, and an end on Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_server import CommandServer
from tests.ray_nodes import RayNodes
from tests.tune.conftest import Workspace
from tests.tune.test_tune_command import check_whole, trials_of, wait_for_end

ACTOR = "ray::TuneActor"


@dataclass(frozen=True)
class OnNodes(Workspace):
    """A workspace whose commands reach the cluster."""

    nodes: RayNodes

    def environment(self) -> dict[str, str]:
        own = {"OPTBENCH_WORKSPACE": str(self.root)}
        return {**super().environment(), **self.nodes.environment(), **own}

    @property
    def engine(self) -> tuple[str, ...]:
        return ("--backend", "ray", "--address", self.nodes.address, "--no-track")

    def workers(self) -> list[int]:
        """Process ids of the workers on all nodes."""
        children = [child for raylet in self.nodes.raylets() for child in raylet.children()]
        named = [(child.pid, " ".join(child.cmdline())) for child in children]
        return [pid for pid, title in named if title.startswith(ACTOR)]

    def wait_for_cells(self, number: int) -> None:
        deadline = time.monotonic() + 120
        results = self.root / ".optbench" / "results.jsonl"
        while time.monotonic() < deadline:
            if results.is_file() and results.read_bytes().count(b"\n") >= number:
                return
            time.sleep(0.05)
        raise AssertionError(f"no {number} cells within two minutes")


@pytest.fixture
def on_nodes(workspace: Workspace, command_server: CommandServer, ray_nodes: RayNodes) -> OnNodes:
    return OnNodes(workspace.root, command_server, ray_nodes)


def test_one_worker_on_a_node_finds_what_one_at_home_does(on_nodes: OnNodes) -> None:
    there = on_nodes.run("tune", "mini", *on_nodes.engine, "-n", "1")
    check_whole(on_nodes, there, cells=2)
    (on_nodes.root / "there").mkdir()
    (on_nodes.root / ".optbench").rename(on_nodes.root / "there" / ".optbench")
    home = on_nodes.run("tune", "mini", "--no-track")
    assert (
        there["best"] == home["best"]
        and there["validation"]["goals"] == home["validation"]["goals"]
    )
    storage = str(on_nodes.root / "there" / Path(there["storage"]).relative_to(on_nodes.root))
    found = [
        [(trial.params, trial.values) for trial in trials_of(where, there["search"])]
        for where in (storage, home["storage"])
    ]
    assert found[0] == found[1]


def test_a_killed_worker_s_trial_is_adopted_elsewhere(on_nodes: OnNodes) -> None:
    """Four trials of two cells of a quarter of a second: the first record is of the defaults."""
    process = on_nodes.start("tune", "slow", *on_nodes.engine, "-n", "2", "--json")
    on_nodes.wait_for_cells(3)
    os.kill(on_nodes.workers()[0], signal.SIGKILL)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert "died; its trial is adopted by another worker" in err
    told = json.loads(out)
    assert told["deaths"] == 1
    check_whole(on_nodes, told, cells=2)


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_and_home_goes_on(on_nodes: OnNodes) -> None:
    process = on_nodes.start("tune", "slow", *on_nodes.engine, "-n", "2", "--json")
    on_nodes.wait_for_cells(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert json.loads(out)["interrupted"]
    wait_for_end(on_nodes.workers())
    check_whole(on_nodes, on_nodes.run("tune", "slow", "--no-track"), cells=2)
