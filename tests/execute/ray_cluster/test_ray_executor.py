"""Studies on a real cluster of two nodes: a node that is lost, devices, nodes that do not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from optbench.sandbox import seccomp
from optbench.sandbox.landlock import NETWORK_SINCE, landlock_version
from optbench.store.run_store import Store
from tests.execute.conftest import on_cluster
from tests.execute.engine_programs import EngineUnderTest, said, until
from tests.hostile.cases import COMMAND, MARK, marked
from tests.ray_nodes import RayNodes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SLEEPS = """
import os, socket, time
from dataclasses import dataclass
import optbench as ob
from ._everything import EVERYTHING
from ._honest import honest

@dataclass(frozen=True)
class Sleeps(ob.Solver):
    sleep_s: float = 0.4
    reach: str = ""
    supports = EVERYTHING

    def solve(self, instance, run):
        if os.environ.get("BROKEN_MACHINE"):
            os.abort()
        if self.reach:
            host, port = self.reach.split(":")
            try:
                socket.create_connection((host, int(port))).close()
                print("reached")
            except PermissionError:
                print("refused")
        print(os.environ.get("CUDA_VISIBLE_DEVICES"), *sorted(os.sched_getaffinity(0)))
        time.sleep(self.sleep_s)
        return honest(instance)
"""
STUDY = """
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["sleeps", "fcfs"]
seeds = 4
time_limit = "20s"
bound_limit = "1s"
"""


@pytest.fixture
def cluster(ray_nodes: RayNodes) -> EngineUnderTest:
    return on_cluster(ray_nodes)


@pytest.fixture
def workspace(root: Path) -> Path:
    (root / "solvers" / "sleeps.py").write_text(SLEEPS)
    (root / "studies" / "rules.toml").write_text(STUDY)
    return root


def begun(engine: EngineUnderTest, root: Path, *words: str) -> subprocess.Popen[str]:
    """Begin the study from the command line."""
    return subprocess.Popen(
        [*COMMAND, "run", "rules", "--no-track", *engine.arguments, *words],
        cwd=root,
        env={**engine.environment, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(root: Path) -> Iterator[tuple[str, object]]:
    """Keys and objectives, one for each line of the store."""
    for line in (root / ".optbench" / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["reason"] is None, record["reason"]
        yield record["key"], record["objective"]


def test_a_study_that_loses_a_node_has_the_results_of_one_at_home(
    cluster: EngineUnderTest, ray_nodes: RayNodes, workspace: Path
) -> None:
    home = begun(EngineUnderTest("local"), workspace, "-n", "2")
    out, errors = home.communicate(timeout=240)
    assert home.returncode == 0, out + errors
    expected = sorted(results(workspace))
    # Nothing is left to do: the cluster, which does not answer there, is not joined.
    nowhere = EngineUnderTest("ray", arguments=("--backend", "ray", "--address", "127.0.0.1:9"))
    out, errors = begun(nowhere, workspace).communicate(timeout=240)
    assert "12 cells" in out, out + errors
    (workspace / ".optbench").rename(workspace / ".at-home")
    started = begun(cluster, workspace)
    store = workspace / ".optbench" / "results.jsonl"
    until(lambda: store.exists() and len(store.read_text().splitlines()) >= 2)
    ray_nodes.kill_node(ray_nodes.workers()[0])
    out, errors = started.communicate(timeout=240)
    assert started.returncode == 0, out + errors
    # Four instances: a bounding and two solvers each; none is missing, none stands twice.
    assert sorted(results(workspace)) == expected and len(expected) == 12
    # Ray notices after some seconds; until then the node does not answer.
    assert "; its cells run elsewhere" in errors
    assert list((workspace / ".optbench" / "work").iterdir()) == []
    until(lambda: marked(workspace) == [])


def test_cells_have_devices_and_cores_of_their_own(
    cluster: EngineUnderTest, workspace: Path
) -> None:
    """Two cells with a GPU run on the one node that has two, at once, on a core each."""
    started = cluster.program(
        workspace,
        "from dataclasses import replace",
        "from optbench.errors import OptbenchError",
        "def made(gpus, **params):",
        "    given = job('sleeps', **params)",
        "    return replace(given, budget=CellBudget(20.0, gpus=gpus))",
        "def long():  # longer than a lease takes to start: both are at work at once",
        "    given = made(1)",
        "    params = {'sleep_s': 3.0}",
        "    return replace(given, payload={**given.payload, 'params': params})",
        "with engine(2) as executor:",
        "    for outcome in executor.run([long(), long(), made(0, reach=ADDRESS)]):",
        "        host = outcome.machine['host']",
        "        print(json.dumps([*outcome.output.split(), outcome.machine['cpu'] != '']))",
        "    for budget in (CellBudget(gpus=3), CellBudget(threads=500)):",
        "        try: executor.admit([budget])",
        "        except OptbenchError as error: print(json.dumps([str(error)]))",
    )
    *cells, (no_gpus,), (no_cores,) = said(started)
    devices = sorted(str(cell[0]) for cell in cells[:2])
    assert devices == ["0", "1"]
    # Each has one core and its machine is described; the third sees no device: an empty variable
    # leaves the number of the core alone. It makes no socket to Ray's port.
    assert [len(cell) for cell in cells] == [3, 3, 3]
    assert cells[0][1] != cells[1][1]
    without = seccomp.is_available() or landlock_version() >= NETWORK_SINCE
    assert cells[2][0] == ("refused" if without else "reached")
    assert "reserved_gpus = 3" in str(no_gpus) and "fits on no node of the cluster" in str(no_gpus)
    assert "threads = 500" in str(no_cores) and "2 GPUs" in str(no_cores)


def test_a_node_with_other_versions_is_named(
    cluster: EngineUnderTest, ray_nodes: RayNodes, workspace: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "scipy-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: scipy\nVersion: 0.1\n")
    checkout = str(Path(__file__).resolve().parents[3])
    raylet = ray_nodes.add_node(PYTHONPATH=f"{other.parent}:{checkout}")
    try:
        started = begun(cluster, workspace)
        out, errors = started.communicate(timeout=240)
    finally:
        ray_nodes.kill_node(raylet)
    assert started.returncode == 2, out + errors
    assert "has scipy 0.1; the driver has" in errors and "Install the same versions" in errors
    assert Store(workspace / ".optbench").records() == {}


@pytest.mark.slow
def test_a_node_that_joins_with_other_versions_is_not_used(
    cluster: EngineUnderTest, ray_nodes: RayNodes, workspace: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "scipy-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: scipy\nVersion: 0.1\n")
    checkout = str(Path(__file__).resolve().parents[3])
    text = (workspace / "studies" / "rules.toml").read_text()
    longer = text.replace('"sleeps"', '"sleeps:sleep_s=90"').replace("20s", "100s")
    (workspace / "studies" / "rules.toml").write_text(longer)
    started = begun(cluster, workspace)
    store = workspace / ".optbench" / "results.jsonl"
    until(lambda: store.exists() and len(store.read_text().splitlines()) >= 1)
    raylet = ray_nodes.add_node(PYTHONPATH=f"{other.parent}:{checkout}")
    assert started.stderr is not None
    # The study goes on meanwhile, and ends if nothing is said.
    said_so = next((line for line in started.stderr if "has scipy" in line), "")
    started.terminate()
    started.communicate(timeout=240)
    ray_nodes.kill_node(raylet)
    assert "has scipy 0.1; the driver has" in said_so and "it is not used" in said_so
    assert started.returncode == 130


@pytest.mark.slow
def test_a_node_on_which_cells_keep_failing_is_set_aside(
    cluster: EngineUnderTest, ray_nodes: RayNodes, workspace: Path
) -> None:
    """Its cells end by a signal there and succeed elsewhere: the machine is at fault."""
    ray_nodes.kill_node(ray_nodes.workers()[0])
    broken = ray_nodes.add_node(BROKEN_MACHINE="yes")
    text = (workspace / "studies" / "rules.toml").read_text().replace("seeds = 4", "seeds = 12")
    (workspace / "studies" / "rules.toml").write_text(text.replace(', "fcfs"', ""))
    started = begun(cluster, workspace)
    out, errors = started.communicate(timeout=240)
    ray_nodes.kill_node(broken)
    assert started.returncode == 0, out + errors
    assert "is set aside: 3 cells of sleeps in a row failed there (signal: ended by" in errors
    assert "signal 6" in errors
    assert len(list(results(workspace))) == 24


@pytest.mark.slow
def test_the_loss_of_the_only_fitting_node_leaves_its_cells_missing(
    cluster: EngineUnderTest, ray_nodes: RayNodes, workspace: Path
) -> None:
    """Only one node has GPUs: its cells are no failures, and run once there is such a node."""
    text = (workspace / "studies" / "rules.toml").read_text()
    placed = text.replace('"sleeps"', '"sleeps:sleep_s=3,reserved_gpus=1"')
    (workspace / "studies" / "rules.toml").write_text(placed)
    started = begun(cluster, workspace)
    store = workspace / ".optbench" / "results.jsonl"
    until(lambda: store.exists() and '"sleeps"' in store.read_text())
    ray_nodes.kill_node(ray_nodes.workers()[0])
    out, errors = started.communicate(timeout=240)
    assert started.returncode == 2, out + errors
    assert "cells have not been run: no node that is left has room for a cell with 1 th" in errors
    assert "the same command continues" in errors and "does not answer" in errors
    # Those that need no GPU are finished: a bounding and a rule for each of four instances.
    kept = list(results(workspace))
    assert 9 <= len(kept) < 12
    ray_nodes.complete()
    resumed = begun(cluster, workspace)
    out, errors = resumed.communicate(timeout=240)
    assert resumed.returncode == 0, out + errors
    assert len(dict(results(workspace))) == 12 == len(list(results(workspace)))


@pytest.mark.slow
def test_after_the_loss_of_the_driver_the_same_command_goes_on(
    cluster: EngineUnderTest, workspace: Path
) -> None:
    started = begun(cluster, workspace)
    store = workspace / ".optbench" / "results.jsonl"
    until(lambda: store.exists() and len(store.read_text().splitlines()) >= 2)
    started.kill()
    started.communicate()
    until(lambda: marked(workspace) == [])
    resumed = begun(cluster, workspace)
    out, errors = resumed.communicate(timeout=240)
    assert resumed.returncode == 0, out + errors
    assert len(dict(results(workspace))) == 12 == len(list(results(workspace)))


@pytest.mark.slow
def test_ctrl_c_kills_the_cells_on_all_nodes(cluster: EngineUnderTest, workspace: Path) -> None:
    text = (workspace / "studies" / "rules.toml").read_text()
    longer = text.replace('"sleeps"', '"sleeps:sleep_s=15"')
    (workspace / "studies" / "rules.toml").write_text(longer)
    started = begun(cluster, workspace)
    store = workspace / ".optbench" / "results.jsonl"
    until(lambda: store.exists() and len(store.read_text().splitlines()) >= 4)
    started.terminate()
    out, errors = started.communicate(timeout=240)
    assert started.returncode == 130, out + errors
    assert "optbench: stopping" in errors
    until(lambda: marked(workspace) == [])
