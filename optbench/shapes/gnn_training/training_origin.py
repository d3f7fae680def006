"""What an instance of a user's graph or model has beside its data: names of nodes, and what is
trained. It is no part of the instance's hash and files, and verifier and bounds do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
