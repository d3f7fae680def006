"""Checkpoints of placement agents in safetensors: each layer by its name, and the provenance in the
header.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from optbench.errors import FileFormatError
from optbench.files import replacing
from optbench.learn.placement.graph_transformer import PlacementNetwork
from optbench.learn.tensor_file import read_tensor_file

FORMAT = "optbench-placement-agent-1"
FOLDER = Path(__file__).parent
SHIPPED = {
    "agent": FOLDER / "distributional.safetensors",
    "policy_gradient": FOLDER / "policy_gradient.safetensors",
}


def write_agent(path: Path, weights: dict[str, Any], provenance: dict[str, Any]) -> None:
    """Write the file atomically."""
    from safetensors.numpy import save_file

    about = {"format": FORMAT, "provenance": provenance}
    with replacing(path) as fresh:
        save_file(weights, str(fresh), metadata={"optbench": json.dumps(about)})


def read_agent(path: Path) -> tuple[PlacementNetwork, dict[str, Any]]:
    """Read a network and its provenance; an error names what is wrong with the file."""
    make = f"optbench train mdp_allocation --on gnn_training -o {path}"
    about, weights = read_tensor_file(path, FORMAT, make, "of an agent that places parts", "pt")
    network = PlacementNetwork()
    for name, wanted in network.state_dict().items():
        found = weights.get(name)
        if found is None or found.shape != wanted.shape:
            has = "missing" if found is None else f"of shape {tuple(found.shape)}"
            raise FileFormatError(
                f"{path}: layer {name!r} is {has}; this network has {tuple(wanted.shape)} there"
            )
        if not bool(torch.isfinite(found).all()):
            raise FileFormatError(f"{path}: layer {name!r} holds a weight that is not finite")
    network.load_state_dict(weights)
    return network, dict(about.get("provenance") or {})


def cached_agent(path: Path) -> PlacementNetwork:
    """Return the network of a file, read once as long as the file does not change."""
    return _cached(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=4)
def _cached(path: Path, _modified_ns: int) -> PlacementNetwork:
    return read_agent(path)[0]
