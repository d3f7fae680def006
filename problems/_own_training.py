"""A user's model and graph as the parts of an instance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optbench.errors import FileFormatError, ParameterError
from optbench.model.files.json_fields import shown
from optbench.shapes.gnn_training.training_data import GnnTraining

from ._modelled_networks import ModelledNetwork

if TYPE_CHECKING:
    from optbench.gnn.ingestion.ingested_graph import IngestedGraph


def require_files(
    model: str | None, data: str | None, node_table: str | None, devices: str | None
) -> None:
    """Refuse names of files that do not exist; tables of databases and OGB's names are none."""
    from optbench.gnn.ingestion.ogb_folder import is_ogb

    table = node_table
    if data is not None and ("://" in data or is_ogb(data)):
        data = table = None
    named = {"data": data, "node_table": table, "devices": devices}
    if model is not None and ":" in model:
        named["model"] = model.rpartition(":")[0]
    for name, file in named.items():
        if file is not None and not Path(file).exists():
            raise FileFormatError(f"{name} {shown(Path(file))}: no such file")


def own_network(model: str, features: int, hidden: int, classes: int) -> ModelledNetwork:
    """Return the operators and fusions of the model ``FILE.py:NAME``."""
    from optbench.gnn.operators.fusion_candidates import fusion_candidates
    from optbench.gnn.operators.model_files import load_model
    from optbench.gnn.operators.operator_graph import operator_graph

    graph = operator_graph(load_model(model, features, hidden, classes), features, model)
    if graph.num_classes < classes:
        raise ParameterError(
            f"model {model!r} gives {graph.num_classes} scores for each node; the labels have "
            f"{classes} classes"
        )
    made = ModelledNetwork(parameter_bytes=graph.parameter_bytes)
    made.operators += graph.operators
    made.fusions += fusion_candidates(graph)
    return made


def require_features(found: IngestedGraph, data: str, features: int | None) -> None:
    """Refuse a number of features beside a table that has its own."""
    if features is not None and found.num_features not in (0, features):
        raise ParameterError(
            f"features is {features}; {data} has {found.num_features} for each node, so leave it "
            "out"
        )


def require_memory(data: GnnTraining) -> None:
    """Refuse devices that cannot hold a copy of the parameters."""
    for each in data.devices:
        if each.memory_gb is not None and each.memory_gb * 1e9 < data.parameter_bytes:
            raise ParameterError(
                f"device {each.name!r} has {each.memory_gb:g} GB, which hold no part: the "
                f"parameters of the model alone take {data.parameter_bytes / 1e9:.6g} GB"
            )
