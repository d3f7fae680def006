"""A folder belongs to one command, and no process goes on when that command is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from optbench.errors import ParameterError
from optbench.gnn.runtime.held_folder import FolderInUseError, held
from optbench.gnn.runtime.training_checkpoints import FILE
from optbench.gnn.runtime.training_job import write_job
from optbench.gnn.runtime.training_processes import MACHINES, machines
from tests.gnn.runtime.small_training import labelled, small_job


def test_a_killed_command_leaves_no_process(tmp_path: Path) -> None:
    """The command runs where a ``types.py`` would hide the library's from its processes."""
    (tmp_path / "types.py").write_text("raise ImportError('a file of the user')\n")
    folder = tmp_path / "job"
    write_job(folder, small_job("gcn", 2, epochs=10**6, checkpoint_every=5), labelled(2))
    code = (
        "import sys; from pathlib import Path; sys.path.append('.'); "
        "from optbench.gnn.runtime.training_processes import start_everywhere; "
        "start_everywhere([Path('job')])"
    )
    command = subprocess.Popen([sys.executable, "-P", "-c", code], cwd=tmp_path)
    workers: list[psutil.Process] = []
    try:
        end = time.monotonic() + 150
        while not (folder / FILE).is_file() and time.monotonic() < end:
            assert command.poll() is None
            time.sleep(0.05)
        workers = psutil.Process(command.pid).children()
        assert len(workers) == 2
        refused = f"process {command.pid} trains in this folder"
        with pytest.raises(FolderInUseError, match=refused), held(folder):
            pass
    finally:
        command.kill()
        command.wait()
        ended, left = psutil.wait_procs(workers, timeout=60)
        for each in left:
            each.kill()
    assert len(ended) == 2 and not left
    # What the killed command has left behind keeps nobody out.
    with held(folder):
        assert (tmp_path / ".job.lock").read_text() == str(os.getpid())
    assert not (tmp_path / ".job.lock").exists()


@pytest.mark.parametrize("given", ["1:2", "0", "two", ""])
def test_numbers_of_machines_are_whole(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MACHINES, given)
    with pytest.raises(ParameterError, match=f"PET_NNODES is '{given}'; it must be one whole"):
        machines()
    monkeypatch.setenv(MACHINES, "2")
    assert machines() == 2
