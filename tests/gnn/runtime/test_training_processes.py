"""Real processes: one is killed in the middle of an epoch, others find mistakes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from optbench.gnn.runtime.device_rows import read_rows
from optbench.gnn.runtime.trained_network import train
from optbench.gnn.runtime.training_checkpoints import FILE
from optbench.gnn.runtime.training_job import write_job
from optbench.gnn.runtime.training_processes import TrainingError, start_processes
from optbench.gnn.runtime.training_result import read_result, trained_weights
from tests.gnn.runtime.small_training import labelled, small_job

# Long enough that a process can be killed on the way.
EPOCHS, EVERY = 120, 10


def kill_when_under_way(folder: Path, rank: int) -> list[int]:
    """Kill a process once there is a checkpoint; return its number."""
    end = time.monotonic() + 100
    while not (folder / FILE).is_file() and time.monotonic() < end:
        time.sleep(0.005)
    killed = []
    for child in psutil.Process().children():
        of_this = str(folder.resolve()) in child.cmdline()
        if of_this and child.environ().get("RANK") == str(rank):
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)
    return killed


def test_a_killed_process_changes_nothing(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    job = small_job("gcn", 2, epochs=EPOCHS, checkpoint_every=EVERY, sample_s=0.01)
    for folder in (whole, broken):
        write_job(folder, job, labelled(2))
    assert start_processes([whole]) == 0
    killed: list[int] = []
    killer = threading.Thread(target=lambda: killed.extend(kill_when_under_way(broken, 1)))
    killer.start()
    restarts = start_processes([broken])
    killer.join()
    assert len(killed) == 1 and restarts == 1
    wanted, found = read_result(whole), read_result(broken)
    # The second attempt continues after a checkpoint, and everything is the same to the last bit.
    assert found.first_step >= EVERY and found.first_step % EVERY == 0 and found.attempt == 1
    assert len(found.losses) == EPOCHS and found.losses == wanted.losses
    weights = trained_weights(broken)
    for name, value in trained_weights(whole).items():
        assert weights[name].equal(value), name
    assert {row["attempt"] for row in read_rows(broken)} == {0, 1}


def test_a_mistake_is_not_tried_again(tmp_path: Path) -> None:
    nodes = labelled(1)
    nodes.features[:] = 1e300
    job = small_job("gcn", 1, precision="float32", epochs=4)
    with (
        np.errstate(over="ignore"),
        pytest.raises(TrainingError, match=r"step 0: the loss of \d+ nodes is not a number"),
    ):
        train(tmp_path, job, nodes)
    assert not list(tmp_path.glob("meeting-*")) and not (tmp_path / "result.json").exists()
