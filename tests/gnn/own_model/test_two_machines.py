"""The same command on each of two machines, both played by this one, returns the same weights."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.gnn.own_model.users_models import CLASSES, write_code

NODES = 40
COMMAND = (
    "gnn_training:model=users_model.py:Sage,data=edges.csv,node_table=nodes.csv,parts=2,epochs=12"
)


@pytest.mark.slow
def test_two_machines_return_the_weights_of_one(tmp_path: Path) -> None:
    write_code(tmp_path)
    edges = "".join(f"{v},{(v + 1) % NODES}\n" for v in range(NODES))
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    rows = "".join(f"{v},{v % CLASSES},{v % 7},1\n" for v in range(NODES))
    (tmp_path / "nodes.csv").write_text("id,label,x,y\n" + rows)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = {
        "PET_NNODES": "2",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
        "PET_RDZV_ID": "two-machines",
        "PET_LOCAL_ADDR": "127.0.0.1",
    }
    paths = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}

    def started(name: str, more: dict[str, str]) -> subprocess.Popen[str]:
        solve = [sys.executable, "-m", "optbench.cli.main", "solve", COMMAND, "--json"]
        limits = ["--measure", "2", "-s", "metis", "--files", name]
        return subprocess.Popen(
            [*solve, *limits],
            cwd=tmp_path,
            env={**environment, **more},
            stdout=subprocess.PIPE,
            text=True,
        )

    alone = started("alone", {})
    out, _ = alone.communicate(timeout=300)
    losses = [json.loads(out)["measured"]["outcome"]["last_loss"]]
    together = [started(name, cluster) for name in ("first", "second")]
    for each in together:
        out, _ = each.communicate(timeout=300)
        losses.append(json.loads(out)["measured"]["outcome"]["last_loss"])
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-5)
    found = [
        torch.load(tmp_path / name / "weights.pt", weights_only=True)
        for name in ("alone", "first", "second")
    ]
    for key, wanted in found[0].items():
        assert torch.allclose(found[1][key], wanted, atol=1e-4)
        assert torch.equal(found[1][key], found[2][key])
