"""Features, labels and splits of a training, from what a user's files hold.

Where there is no ``split``, labelled nodes are dealt by the seed: 60 % train, 20 % validate, 20 %
test. Nodes without a label take part in sums over neighbours alone. What is not given is drawn by
the seed, and a remark says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.errors import ParameterError
from optbench.gnn.runtime.training_job import TESTED, TRAINED, UNUSED, VALIDATED
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training.training_origin import TrainingOrigin

SHARES = (0.6, 0.2)
REMEDY = "give node_table=FILE, a CSV with the columns id and label, and a column for each feature"


@dataclass(frozen=True, eq=False)
class ValuesOfNodes:
    """Arrays with a row per node, as ``LabelledNodes`` has them, and what they stand for."""

    features: Any
    labels: Ints
    split: Ints
    num_classes: int
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    drawn_labels: bool = False
    remarks: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many nodes are trained on, validated, tested and neither."""
        named = {"train": TRAINED, "validation": VALIDATED, "test": TESTED, "unused": UNUSED}
        return {name: int((self.split == value).sum()) for name, value in named.items()}


def values_of_nodes(origin: TrainingOrigin, count: int) -> ValuesOfNodes:
    """Return what the processes read."""
    given, rng = origin.nodes, np.random.default_rng(origin.seed)
    remarks = list[str]()
    if given is not None and given.features.size:
        features, names = given.features.astype(np.float32), given.feature_names
    else:
        features, names = rng.standard_normal((count, origin.features), dtype=np.float32), ()
        remarks.append(
            f"{origin.source} has no features: {origin.features} for each node were drawn by the "
            f"seed; {REMEDY}"
        )
    if given is None or not (given.labels >= 0).any():
        labels = rng.integers(0, origin.classes, count)
        remarks.append(
            f"{origin.source} has no labels: seconds were measured with labels drawn by the seed, "
            f"and there are no weights; {REMEDY}"
        )
        split = np.full(count, TRAINED)
        return ValuesOfNodes(
            features, labels, split, origin.classes, (), names, drawn_labels=True, remarks=remarks
        )
    split, words = _split(origin, given, rng)
    labels = np.where(given.labels >= 0, given.labels, 0)
    classes = max(origin.classes, len(given.class_names))
    return ValuesOfNodes(
        features, labels, split, classes, given.class_names, names, False, [*remarks, *words]
    )


def _split(origin: TrainingOrigin, given: Any, rng: np.random.Generator) -> tuple[Ints, list[str]]:
    """What each node is for; nodes without a label are for nothing."""
    labelled = given.labels >= 0
    if len(given.split):
        split = np.where(labelled, given.split + 1, UNUSED)
        if not (split == TRAINED).any():
            raise ParameterError(
                f"{origin.source}: no node with a label has split train, so that there is nothing "
                "to train on; write train in the column split of some nodes"
            )
        return split, []
    chosen = rng.permutation(np.flatnonzero(labelled))
    ends = np.maximum(1, np.floor(np.cumsum(SHARES) * len(chosen))).astype(np.int64)
    split = np.full(len(labelled), UNUSED)
    parts = np.split(chosen, ends)
    for value, part in zip((TRAINED, VALIDATED, TESTED), parts, strict=True):
        split[part] = value
    words = f"{origin.source} has no column split: labelled nodes were dealt 60 : 20 : 20"
    return split, [f"{words} to train, validation and test by the seed"]
