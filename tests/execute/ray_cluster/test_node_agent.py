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
    "from optbench.execute.message_channel import MessageChannel",
    "from optbench.execute.ray_cluster import node_agent",
    "from optbench.execute.ray_cluster.node_agent import AgentSettings, job_to",
    "from optbench.execute.ray_cluster.agent_socket import connect",
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
    "    channel.send({'turn': turn, 'job': made, 'gpus': [], 'network': True})",
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


def test_a_cell_cannot_end_an_agent_by_opening_connections(root: Path) -> None:
    """Processes that the agent has started are refused; others that say nothing are few."""
    started = EngineUnderTest("local").program(
        root,
        "import resource, subprocess",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))",
        *AGENT,
        "code = 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])'",
        "child = [sys.executable, '-c', code + '; print(repr(s.recv(1)))', str(path)]",
        "print(json.dumps([subprocess.run(child, capture_output=True, text=True).stdout]))",
        "nested = b'[' * 60_000 + b'\\n'",
        "print(json.dumps([greeted(nested)]))",
        "silent = [socket.socket(socket.AF_UNIX) for _ in range(1200)]",
        "for end in silent: end.connect(str(path))",
        "print(json.dumps([reply(lease('fcfs', 1))['message']['reason'], len(agent.loop.leases)]))",
        "print(json.dumps([agent.leave(), path.exists(), agent.thread.is_alive()]))",
        "print(json.dumps([[p.name for p in (path.parent / 'work').iterdir()]]))",
    )
    (child,), (nested,), (reason, leases), left, (folders,) = said(started)
    assert child == "b''\n" and nested == "" and reason is None
    # At most 64 silent ones, and the lease.
    assert int(leases or 0) <= 65
    # It leaves neither its socket nor a folder behind.
    assert json.dumps(left[1:]) == "[false, false]" and not folders
