"""Fixtures of the whole suite."""

from __future__ import annotations

import fcntl
import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli.command_server import CommandServer
from tests.ray_nodes import RayNodes

# The same examples on every run, and no deadline: a loaded machine must not make a test fail.
settings.register_profile("optbench", derandomize=True, deadline=None)
settings.load_profile("optbench")
# The key that seals banks is not the user's own.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="optbench-tests-")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes objects that stay: looking for garbage among them takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Folders with tests on the Ray cluster.
ON_CLUSTER = (Path(__file__).parent / "execute", Path(__file__).parent / "tune" / "nodes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests in front, and behind them those that share a Ray cluster, so that one
    worker has them all; the order of the others stays.
    """
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    if item.get_closest_marker("first") is not None:
        return 0
    return 1 if any(item.path.is_relative_to(folder) for folder in ON_CLUSTER) else 2


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The public data set named by $OPTBENCH_DATA. Without it tests are skipped, but never under
    CI.
    """
    named = os.environ.get("OPTBENCH_DATA")
    folder = Path(named) if named else None
    if folder is not None and (folder / "MANIFEST.csv").is_file():
        return folder.resolve()
    problem = (
        f"OPTBENCH_DATA={named} holds no MANIFEST.csv" if named else "OPTBENCH_DATA is not set"
    )
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{problem}; under CI the published instances are not optional")
    pytest.skip(f"{problem}: set it to the folder of published instances")


@pytest.fixture(scope="session")
def command_server() -> Iterator[CommandServer]:
    """Runs ``optbench`` commands in processes of their own, without importing everything anew."""
    server = CommandServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def ray_session() -> Iterator[RayNodes]:
    """A Ray cluster of two nodes on this machine."""
    nodes = RayNodes()
    yield nodes
    nodes.close()


@pytest.fixture
def ray_nodes(ray_session: RayNodes) -> RayNodes:
    """The cluster of the session, with a worker node even if a test has killed it."""
    ray_session.complete()
    return ray_session


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's database without a run, made once for all workers to be copied: its tables take
    seconds.
    """
    from optbench.track.tracking import Tracking

    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    root, made = shared / "empty", shared / "empty-is-made"
    with (shared / "empty.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            root.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("MLFLOW_TRACKING_URI", raising=False)
                Tracking(workspace=root).client.search_experiments()
            made.touch()
    return root / "mlflow" / "mlflow.db"
