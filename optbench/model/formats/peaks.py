"""The number of devices of each node that a log shows in use."""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Ints


def busy_peaks(which: Ints, start: Floats, end: Floats, count: Ints, size: int) -> Ints:
    """The largest number of busy devices by node; ends count before starts at the same time."""
    node, t = np.concatenate((which, which)), np.concatenate((start, end))
    change = np.concatenate((count, -count))
    order = np.lexsort((change, t, node))
    level = np.cumsum(change[order])  # 0 again at the end of each node
    out = np.zeros(size, dtype=np.int64)
    np.maximum.at(out, node[order], level)
    return out
