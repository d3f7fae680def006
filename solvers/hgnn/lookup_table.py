"""A table of mean answers in the place of the network: of the whole, and by the name of a device.

Tasks and sets have the answers of no network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import ParameterError
from optbench.model.classes import class_view
from optbench.model.instance import Floats, Instance

from .answers import Answers, plain_answers
from .seen_arrays import SeenArrays


def class_names(instance: Instance) -> list[str]:
    """Return the name of each class: that of its first pool without the number of its node."""
    names = instance.pools.names
    _, first = np.unique(class_view(instance).pool_class, return_index=True)
    firsts = (names[p].split(" and ")[0] for p in first.tolist())
    return [name.rstrip("0123456789").rstrip("-_.") or name for name in firsts]


@dataclass(frozen=True, eq=False)
class TableOfMeans:
    """Answers for the whole and for each class of a cluster, whatever the tasks are."""

    whole: Floats
    device: Floats

    def answers(self, seen: SeenArrays) -> Answers:
        plain = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        return Answers(self.whole, self.device, plain.task, plain.task_factor, plain.set_factor)


def table_for(instance: Instance, table: dict[str, Any]) -> TableOfMeans:
    """Return the answers of a checkpoint's table for a cluster; unknown devices have the mean
    price.
    """
    if not table:
        raise ParameterError("hgnn: weights is 'table', but its checkpoint has no table of means")
    means = table["device"]
    middle = float(np.mean(list(means.values()))) if means else 0.0
    device = np.array([means.get(name, middle) for name in class_names(instance)])
    return TableOfMeans(np.asarray(table["whole"], dtype=float), device)
