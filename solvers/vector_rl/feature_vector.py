"""A vector of fixed length in the place of the graph: the whole, means and maxima of tasks and
classes of devices, and a padded table of classes.

The table has a row of features per class, in ascending order of slowness, then dearness, then the
other columns as they are listed; rows beyond the number of classes are 0, and classes beyond the
number of rows are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Ints

from ..hgnn.seen_arrays import (
    CLASS_COLUMNS,
    TASK_COLUMNS,
    WHOLE_COLUMNS,
    Float32,
    SeenArrays,
)

# Columns by which classes are ordered, the first ones first.
ORDER = ("slowness", "dearness", *(c for c in CLASS_COLUMNS if c not in ("slowness", "dearness")))


@dataclass(frozen=True, eq=False)
class FeatureVector:
    """The vector, and the row of each class in the table; the number of rows where it has none."""

    values: Float32
    row: Ints


def vector_length(slots: int) -> int:
    """Return the length of the vector with so many rows for classes."""
    return len(WHOLE_COLUMNS) + 2 * len(TASK_COLUMNS) + (2 + slots) * len(CLASS_COLUMNS)


def feature_vector(seen: SeenArrays, slots: int) -> FeatureVector:
    """Return the vector of what is seen, with so many rows for classes."""
    keys = [seen.device[:, CLASS_COLUMNS.index(name)] for name in ORDER]
    listed = np.lexsort(keys[::-1])[:slots]
    row = np.full(len(seen.device), slots, dtype=np.int64)
    row[listed] = np.arange(len(listed))
    table = np.zeros((slots, len(CLASS_COLUMNS)), dtype=np.float32)
    table[: len(listed)] = seen.device[listed]
    sums = (f(rows, axis=0) for rows in (seen.task, seen.device) for f in (np.mean, np.max))
    return FeatureVector(np.concatenate((seen.whole, *sums, table.ravel())), row)
