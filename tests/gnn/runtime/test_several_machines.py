"""The same command on each of two machines, both played by this one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.gnn.runtime.process_ranks import ProcessRanks
from optbench.gnn.runtime.training_job import write_job
from optbench.gnn.runtime.training_result import read_result
from optbench.gnn.runtime.training_worker import TrainingWorker
from tests.gnn.runtime.small_training import labelled, small_job


@pytest.mark.slow
def test_two_machines_train_as_one_process_does(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for folder, devices in ((alone, 1), (together, 2)):
        write_job(folder, small_job("gcn", devices, precision="float64"), labelled(devices))
    TrainingWorker(alone, ProcessRanks()).run()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What a cluster sets on each of its machines, for torchrun.
    cluster = {
        "PET_NNODES": "2",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
        "PET_RDZV_ID": "two-machines",
        "PET_LOCAL_ADDR": "127.0.0.1",
    }
    paths = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, "-m", "optbench.gnn.runtime", str(together)]
    environment = {**os.environ, **cluster, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    machines = [subprocess.Popen(command, env=environment) for _ in range(2)]
    try:
        assert [each.wait(200) for each in machines] == [0, 0]
    finally:
        for each in machines:
            each.kill()
    found = read_result(together)
    assert found.losses == pytest.approx(read_result(alone).losses, abs=2.0**-31)
    assert len(found.device_rows) == 2
