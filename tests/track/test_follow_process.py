"""The process that sends a study while it runs: it keeps up, it never holds the runner up, and it
leaves with it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from optbench.sandbox.process_tree import descendants
from optbench.store.run_store import Store
from optbench.track.follow_process import FollowerState, _listen, following
from optbench.track.tracking import Tracking
from tests.track.runs_by_hand import LATER, PLAN, STUDY, cell, keep, record

PATIENCE_S = 100.0
RUNNER = """
import sys, time
from pathlib import Path
from optbench.store.run_store import Store
from optbench.track.follow_process import following
from tests.track.runs_by_hand import STUDY

with following(STUDY, Store(Path(sys.argv[1]))):
    print("begun", flush=True)
    time.sleep(600)
"""


def test_what_is_new_is_sent_before_the_end_and_at_the_end(store: Store, workspace: Path) -> None:
    tracking = Tracking(workspace=workspace)
    with following(STUDY, store, wait_s=PATIENCE_S) as sending:
        keep(store)
        deadline = time.monotonic() + PATIENCE_S
        while sending.done != 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (sending.done, sending.total, sending.trouble) == (3, 3, "")
        (parent,) = tracking.client.search_runs(["1"], "tags.`optbench.kind` = 'study'")
        assert parent.info.status == "RUNNING"
        known = store.records()[cell("fcfs").key]
        store.add(replace(record("fcfs", 9.0), began_at=LATER), {}, known)
    assert sending.warning is None
    (run,) = tracking.client.search_runs(["1"], "tags.`optbench.solver` = 'fcfs'")
    assert run.data.metrics["objective"] == 9.0
    (parent,) = tracking.client.search_runs(["1"], "tags.`optbench.kind` = 'study'")
    assert parent.info.status == "FINISHED"


def test_a_finished_study_costs_no_connection(store: Store, workspace: Path) -> None:
    keep(store)
    with following(STUDY, store, wait_s=PATIENCE_S):
        pass
    assert len(Tracking(workspace=workspace).client.search_runs(["1"])) == len(PLAN.cells) + 1
    with following(STUDY, store, wait_s=PATIENCE_S) as again:
        pass
    assert (again.done, again.warning) == (None, None)


def test_a_server_that_never_answers_holds_nobody_up(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with following(STUDY, store, wait_s=PATIENCE_S) as sending:
            deadline = time.monotonic() + PATIENCE_S
            while sending.total is None and time.monotonic() < deadline:
                time.sleep(0.05)
            sending.hurry = True
    assert sending.unsent == 3
    said = sending.warning or ""
    assert "3 runs are not in MLflow yet" in said and "optbench sync" in said


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_follower_that_is_ended_is_told_with_the_manner(store: Store, workspace: Path) -> None:
    keep(store)
    with following(STUDY, store, wait_s=PATIENCE_S) as sending:
        for pid in descendants(os.getpid()):
            if b"track.follower" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
    said = sending.warning or ""
    assert "the study is not in MLflow yet (the process that sends ended with exit code -9)" in said


def test_what_a_library_prints_is_passed() -> None:
    code = """print("{'no': json}"); print('{"done": 3}')"""
    state = FollowerState()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        _listen(child, state)
    assert state.done == 3


def test_switched_off_it_starts_nothing(store: Store, workspace: Path) -> None:
    keep(store)
    with following(STUDY, store, enabled=False) as sending:
        pass
    assert (sending.done, sending.warning) == (None, None)


def test_it_dies_with_a_runner_that_is_killed(store: Store, workspace: Path) -> None:
    words = [sys.executable, "-c", RUNNER, str(store.folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as runner:
        assert runner.stdout is not None and runner.stdout.readline() == "begun\n"
        children = Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
        if not children.exists():
            pytest.skip("this system does not list children")
        followers = [int(word) for word in children.read_text().split()]
        assert followers
        runner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while any(alive(pid) for pid in followers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in followers if alive(pid)] == []


def alive(pid: int) -> bool:
    """A process that nobody has waited for yet is dead too."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
