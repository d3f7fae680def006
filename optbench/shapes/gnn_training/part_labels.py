"""The numbers of parts after a graph has changed.

A method that partitions anew numbers its parts as it comes, and nearly all nodes would count as
moved. Where parts are alike, as they are to a cut, their numbers are free: they are assigned so
that most nodes keep theirs.
"""

from __future__ import annotations

import numpy as np

from optbench.shapes.gnn_training.training_data import GnnTraining, Ints


def kept_labels(data: GnnTraining, part: Ints) -> Ints:
    """Return the same parts, numbered for most nodes to stay; as they are where parts differ, or
    there is nothing before.
    """
    if not len(data.previous) or data.minimize != "cut":
        return part
    from scipy.optimize import linear_sum_assignment

    known = data.previous >= 0
    common = np.zeros((data.num_parts, data.num_parts))
    np.add.at(common, (part[known], data.previous[known]), 1.0)
    old, new = linear_sum_assignment(common, maximize=True)
    label = np.empty(data.num_parts, dtype=np.int64)
    label[old] = new
    renamed: Ints = label[part]
    return renamed
