"""The agent of a node without a cluster: whom it serves, and what becomes of a lease that ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.execute.engine_programs import EngineUnderTest, said, until
from tests.hostile.cases import marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

# An agent in a thread, and ends of leases that are opened by hand.
AGENT = (
    "import socket",
    "from optbench.execute.base import CellPlacement",
    "from optbench.execute.message_channel import MessageChannel",
    "from optbench.execute.ray_cluster import node_agent",
    "from optbench.execute.ray_cluster.node_agent import AgentSettings, connect, job_to",
    "agent = node_agent.NodeAgent(AgentSettings('right' * 5), 'n' * 20)",
    "path = agent.loop.path",
    "def greeted(words):",
    "    end = socket.socket(socket.AF_UNIX); end.connect(str(path)); end.sendall(words)",
    "    end.settimeout(20)",
    "    try: return end.recv(10).decode()",
    "    except ConnectionResetError: return ''",
    "def lease(solver, turn, **params):",
    "    channel = connect('right' * 5, 'n' * 20, 20.0)",
    "    made = job_to(job(solver, **params), job(solver, **params).payload)",
    "    channel.send({'turn': turn, 'job': made, 'placement': CellPlacement().to_dict()})",
    "    return channel",
    "def reply(channel):",
    "    while (messages := channel.receive()) is not None:",
    "        if messages: return messages[0]",
)


def test_only_leases_that_know_the_secret_are_served(root: Path) -> None:
    """A cell may find the socket; the secret is in no file and no environment."""
    started = EngineUnderTest("local").program(
        root,
        *AGENT,
        "for words in (b'nonsense\\n', b'{\"secret\": \"wrong\"}\\n', b'x' * 100_000, b'[1]\\n'):",
        "    print(json.dumps([greeted(words)]))",
        "print(json.dumps([oct(path.parent.stat().st_mode & 0o777)]))",
        "found = reply(lease('fcfs', 1))",
        "print(json.dumps([found['lost'], found['message']['reason']]))",
    )
    *refused, (mode,), served = said(started)
    assert refused == [[""]] * 4 and mode == "0o700"
    assert served == ["", None]


def test_a_cell_ends_with_its_lease_or_with_its_turn(root: Path) -> None:
    started = EngineUnderTest("local").program(
        root,
        *AGENT,
        "first, second = lease('loops', 1), lease('loops', 2, how='deaf')",
        "while len(agent.loop.pool.busy) < 2: time.sleep(0.05)",
        "first.close()",
        "while len(agent.loop.pool.busy) > 1: time.sleep(0.05)",
        "print(json.dumps([agent.quiet(2), len(agent.loop.pool.busy), reply(second)]))",
        "print(json.dumps([reply(lease('fcfs', 2))['refused']]))",
        "print(json.dumps([reply(lease('fcfs', 3))['message']['reason']]))",
        "print(json.dumps([sorted(p.name for p in agent.loop.folder.iterdir())]))",
    )
    quiet, refused, served, left = said(started)
    assert json.dumps(quiet) == "[true, 0, null]" and refused == ["the driver has stopped"]
    assert served == [None]
    # The folder of the last job is removed by its lease, which has not done so here.
    assert len(left[0] or "") == 2 and "lock" in (left[0] or "")
    until(lambda: marked(root) == [])
