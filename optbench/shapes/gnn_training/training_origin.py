"""What an instance of a user's graph or model has beside its data: names of nodes, and what is
trained. It is no part of the instance's hash and files, and verifier and bounds do not see it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optbench.shapes.gnn_training.training_data import GnnTraining
from optbench.shapes.gnn_training.training_plan import TrainingPlan


@dataclass(frozen=True, eq=False)
class TrainingOrigin:
    """``nodes`` are features, labels and splits as they were read (``NodeValues``), if there are
    any; ``model`` is FILE.py:NAME, made with these sizes, and otherwise a built-in network.
    """

    source: str
    node_names: tuple[str, ...]
    nodes: Any
    model: str | None
    features: int
    hidden: int
    classes: int
    epochs: int
    learning_rate: float
    weight_decay: float
    seed: int

    @property
    def fingerprint(self) -> str:
        """Eight digits that differ between trainings that differ in anything but the plan."""
        told = hashlib.sha256()
        settings = (self.model, self.features, self.hidden, self.classes, self.epochs)
        rates = (self.learning_rate, self.weight_decay, self.seed)
        told.update(repr((self.source, self.node_names, *settings, *rates)).encode())
        for value in () if self.nodes is None else vars(self.nodes).values():
            plain = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
            told.update(hashlib.sha256(plain).digest())
        file = Path("" if self.model is None else self.model.rpartition(":")[0])
        if file.is_file():
            told.update(file.read_bytes())
        return told.hexdigest()[:8]

    @property
    def left_out(self) -> tuple[str, ...]:
        """What a file of the instance does not hold."""
        given = self.nodes
        held = {
            "names of nodes": bool(self.node_names),
            "features": given is not None and given.features.size > 0,
            "labels and splits": given is not None and bool((given.labels >= 0).any()),
            f"the model {self.model}": self.model is not None,
            "epochs and learning rate": True,
        }
        return tuple(name for name, there in held.items() if there)


# What a training leaves in its folder.
TRAINED_FILES = ("weights.pt", "training.json")


def remove_trained(folder: Path | None) -> list[str]:
    """Remove what an earlier training has left in a folder; a remark says so."""
    old = [] if folder is None else [folder / name for name in TRAINED_FILES]
    old = [path for path in old if path.is_file()]
    for path in old:
        path.unlink()
    names = " and ".join(path.name for path in old)
    return [f"{names} of an earlier training in {folder} are replaced"] if old else []


def parts_table(data: GnnTraining, plan: TrainingPlan, names: tuple[str, ...]) -> str:
    """The part and the device of every node, as CSV; names are those of the nodes, or none."""
    device = plan.device_of(data)[plan.part]
    called = [_quoted(each.name) for each in data.devices]
    nodes = [_quoted(each) for each in names] or range(data.graph.num_nodes)
    rows = zip(nodes, plan.part.tolist(), device.tolist(), strict=True)
    lines = [f"{node},{part},{d},{called[d]}\n" for node, part, d in rows]
    return "node,part,device,device_name\n" + "".join(lines)


def _quoted(text: str) -> str:
    """A field of CSV."""
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def names_of(origin: Any, count: int) -> tuple[str, ...]:
    """The names of the nodes where the graph came from a file; ``count`` of them, or none."""
    names: tuple[str, ...] = () if origin is None else origin.node_names
    return names if len(names) == count else ()
