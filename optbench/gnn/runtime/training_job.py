"""What the processes of a training read: settings and arrays in a folder, on each machine.

The folder holds ``job.json``, and the arrays as files that a process maps into memory, so that it
reads the rows of its own nodes only. Checkpoints, rows of measurements and the result go there too.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from optbench.errors import FileFormatError, ModelError
from optbench.files import write_whole
from optbench.gnn.kernels.kernel_names import FIT_FOR_SPARSE, require_fusions
from optbench.shapes.gnn_training.training_data import DataGraph, Ints
from optbench.shapes.protocol.plain_data import from_plain

SETTINGS = "job.json"
ARRAYS = ("tail", "head", "device", "features", "labels", "split")
# The values of ``split``.
UNUSED, TRAINED, VALIDATED, TESTED = range(4)


@dataclass(frozen=True)
class GraphNetworkSettings:
    """Widths of hidden layers; ``heads`` are those of each hidden layer of a GAT."""

    network: Literal["gcn", "sage", "gat"] = "gcn"
    hidden: tuple[int, ...] = (16,)
    heads: int = 8
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if self.network not in ("gcn", "sage", "gat"):
            raise ModelError(f"network is {self.network!r}; it must be gcn, sage or gat")
        if not 0 <= self.dropout < 1:
            raise ModelError(f"dropout is {self.dropout}; it must be a share in [0, 1)")
        if min((*self.hidden, self.heads)) < 1:
            raise ModelError(f"hidden is {self.hidden}, heads {self.heads}; each is at least 1")

    @property
    def num_layers(self) -> int:
        return len(self.hidden) + 1


@dataclass(frozen=True)
class TrainingJob:
    """One training; device d has relative speed ``speeds[d]`` and is pinned to ``cores[d]``.

    No ``cores`` leave the processes unpinned. A checkpoint is written every ``checkpoint_every``
    epochs, none at 0. ``precision`` is that of all arithmetic. ``fusions`` names the kernels of a
    fusion plan: without any, operators run one at a time, with a value per arc and column;
    ``plain_csr`` has one sparse product for the sums of a layer. ``sparse_features`` keeps the
    features as a sparse matrix (not on a GPU); SAGE then needs a first layer that sums no rows of
    features in a step (``aggregated_before``, ``aggregated_last1``). With ``only_readings`` a job
    is refused before its first epoch where a device has not its speed.
    """

    network: GraphNetworkSettings
    num_classes: int
    epochs: int = 100
    seed: int = 0
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    precision: Literal["float32", "float64"] = "float32"
    speeds: tuple[float, ...] = (1.0,)
    cores: tuple[int, ...] = ()
    overlap: bool = True
    checkpoint_every: int = 10
    sample_s: float = 0.1
    timeout_s: float = 120.0
    most_restarts: int = 3
    keep_gradients: bool = False
    fusions: tuple[str, ...] = ()
    sparse_features: bool = False
    only_readings: bool = False

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.checkpoint_every < 0 or self.num_classes < 1:
            raise ModelError(
                f"epochs is {self.epochs}, checkpoint_every {self.checkpoint_every}, num_classes "
                f"{self.num_classes}; epochs and classes are at least 1, checkpoint_every 0"
            )
        if not self.speeds or not all(0 < each <= 1 for each in self.speeds):
            raise ModelError(f"speeds is {self.speeds}; each device has a speed in (0, 1]")
        if len(self.cores) not in (0, len(self.speeds)):
            raise ModelError(f"cores is {self.cores}; it must name one for each device, or none")
        require_fusions(self.network.network, self.network.num_layers, self.fusions)
        fit = FIT_FOR_SPARSE.intersection(self.fusions)
        if self.sparse_features and self.network.network == "sage" and not fit:
            raise ModelError(
                f"sparse_features: fusions {self.fusions} sum rows of features in every step; "
                f"choose one of {', '.join(sorted(FIT_FOR_SPARSE))}"
            )

    @property
    def num_devices(self) -> int:
        return len(self.speeds)


@dataclass(frozen=True)
class LabelledNodes:
    """Graph, features (a row per node), labels, what each node is for, and its device."""

    graph: DataGraph
    features: Any
    labels: Ints
    split: Ints
    device: Ints

    def check(self, job: TrainingJob) -> None:
        """Refuse arrays that do not fit the graph or the job, and features that are no numbers."""
        n = self.graph.num_nodes
        for name in ("features", "labels", "split", "device"):
            if len(getattr(self, name)) != n:
                raise ModelError(f"{name} has {len(getattr(self, name))} rows for {n} nodes")
        if not (finite := np.isfinite(self.features)).all():
            row, column = (int(each[0]) for each in np.nonzero(~finite))
            raise ModelError(
                f"feature {column} of node {row} is {self.features[row, column]}; features are "
                "finite numbers. Fill or drop such values where the data are read"
            )
        ends = {"labels": job.num_classes, "split": TESTED + 1, "device": job.num_devices}
        for name, end in ends.items():
            values = getattr(self, name)
            for v in np.flatnonzero((values < 0) | (values >= end))[:1].tolist():
                raise ModelError(f"{name}[{v}] is {values[v]}; it must be from 0 to {end - 1}")
        if not (self.split == TRAINED).any():
            raise ModelError("split marks no node for training; at least one is needed")


def write_job(folder: Path, job: TrainingJob, nodes: LabelledNodes) -> None:
    """Check a job and write its files."""
    nodes.check(job)
    folder.mkdir(parents=True, exist_ok=True)
    named = {"tail": nodes.graph.tail, "head": nodes.graph.head}
    for name in ARRAYS:
        array = named[name] if name in named else getattr(nodes, name)
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array))
    write_whole(folder / SETTINGS, json.dumps(asdict(job), indent=1))


def read_job(folder: Path) -> tuple[TrainingJob, LabelledNodes]:
    """Read what ``write_job`` wrote; arrays are mapped into memory."""
    path = folder / SETTINGS
    if not path.is_file():
        raise FileFormatError(f"{path} is missing; write_job(folder, job, nodes) writes it")
    job: TrainingJob = from_plain(TrainingJob, json.loads(path.read_text()), "job")
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    graph = DataGraph(len(arrays["device"]), arrays.pop("tail"), arrays.pop("head"))
    return job, LabelledNodes(graph, **arrays)


def fingerprint(folder: Path, *more: bytes) -> str:
    """The hash of settings and arrays, by which processes and checkpoints know their job; ``more``
    is what else belongs to it.
    """
    made = hashlib.sha256()
    for path in (folder / SETTINGS, *(folder / f"{name}.npy" for name in ARRAYS)):
        with path.open("rb") as file:
            made.update(hashlib.file_digest(file, "sha256").digest())
    for each in more:
        made.update(hashlib.sha256(each).digest())
    return made.hexdigest()
