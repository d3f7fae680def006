"""A table of mean answers in the place of the network: of the whole, and by the name of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.model.classes import class_view
from optbench.model.instance import Instance

from .answers import Answers, plain_answers
from .situation import Situation


def class_names(instance: Instance) -> list[str]:
    """Return the name of each class: that of its first pool without the number of its node."""
    names = instance.pools.names
    _, first = np.unique(class_view(instance).pool_class, return_index=True)
    firsts = (names[p].split(" and ")[0] for p in first.tolist())
    return [name.rstrip("0123456789").rstrip("-_.") or name for name in firsts]


def answers_of_table(instance: Instance, found: Situation, table: dict[str, Any]) -> Answers:
    """Return the mean answers of a table; unknown devices have the mean price."""
    seen = found.seen
    plain = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
    means = table["device"]
    middle = float(np.mean(list(means.values()))) if means else 0.0
    device = np.array([means.get(name, middle) for name in class_names(instance)])
    whole = np.asarray(table["whole"])
    return Answers(whole, device, plain.task, plain.task_factor, plain.set_factor)
