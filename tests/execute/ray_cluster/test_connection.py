"""Joining a cluster: what is refused at once, and with which remedy; settings that travel."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.execute.ray_cluster import cluster_probe
from optbench.execute.ray_cluster.connection import (
    ClusterError,
    connected,
    on_nodes,
    travelling_settings,
)
from tests.ray_nodes import RayNodes, free_port

WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
from optbench.errors import OptbenchError
from optbench.execute.ray_cluster.connection import connected
try:
    with connected("127.0.0.1:6379"): pass
except OptbenchError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("head", "must be HOST:PORT"),
        ("head:none", "must be HOST:PORT"),
        ("ray://head:10001", "run this command on a node of the cluster"),
        ("127.0.0.1:{free}", "no Ray cluster answers at '127.0.0.1:.*ray start --head"),
    ],
)
def test_an_address_that_cannot_be_used(address: str, says: str) -> None:
    with pytest.raises(ClusterError, match=says), connected(address.format(free=free_port())):
        pass


def test_a_port_of_another_service_is_left_after_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener that never says anything; Ray would ask it for minutes."""
    monkeypatch.setattr(cluster_probe, "PROBE_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match="not as a Ray cluster"), connected(address):
            pass


def test_a_command_without_the_token_is_told_so(ray_session: RayNodes, tmp_path: Path) -> None:
    """Ray aborts the process that asks; this one only says what is missing. The home is empty."""
    environment = {**ray_session.environment(), "RAY_AUTH_MODE": "token", "HOME": str(tmp_path)}
    program = WITHOUT_RAY.replace('sys.modules["ray"] = None', "")
    done = subprocess.run(
        [sys.executable, "-c", program.replace("127.0.0.1:6379", ray_session.address)],
        capture_output=True,
        text=True,
        check=True,
        env={key: each for key, each in environment.items() if "AUTH_TOKEN" not in key},
    )
    assert "refuses this command's token, or the command has none" in done.stdout
    assert "~/.ray/auth_token" in done.stdout and done.stderr == ""


def test_without_ray_the_extra_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAY], capture_output=True, text=True, check=True
    )
    assert "pip install 'optbench[ray]'" in done.stdout


def test_nodes_are_selected_by_id() -> None:
    assert on_nodes({"b", "a"}) == {"ray.io/node-id": "in(a,b)"}


def test_settings_travel_but_no_folders_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTBENCH_MAX_FILE_MB", "7")
    monkeypatch.setenv("OPTBENCH_CACHE", "/home/me/cache")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    found = travelling_settings()
    assert found["OPTBENCH_MAX_FILE_MB"] == "7"
    assert not {"OPTBENCH_CACHE", "OPTBENCH_DATA", "OPTBENCH_WORKSPACE", "SECRET_TOKEN"} & {*found}
