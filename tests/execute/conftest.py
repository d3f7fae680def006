"""Fixtures of the engines' tests: a workspace of hostile solvers, and each engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.execute.engine_programs import EngineUnderTest
from tests.hostile.cases import make_workspace
from tests.ray_nodes import RayNodes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "ws")


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    """The engine that a test is parametrised with."""
    if request.param == "local":
        return EngineUnderTest("local")
    return on_cluster(request.getfixturevalue("ray_nodes"))


def on_cluster(nodes: RayNodes) -> EngineUnderTest:
    """The engine on the shared cluster."""
    environment = {**nodes.environment(), "ADDRESS_OF_CLUSTER": nodes.address}
    return EngineUnderTest("ray", environment, ("--backend", "ray", "--address", nodes.address))
