"""What counting alone proves of the cut: no search, and exact at once.

parts       a connected component with s > M nodes lies in at least ⌈s / M⌉ parts, which
            ⌈s / M⌉ − 1 of its edges connect at least
degrees     a node of degree d has at most M − 1 neighbours in its own part: the ends of cut
            edges are at least Σ max(0, d − M + 1)
pairs       parts of s nodes have at most s (s − 1) / 2 edges inside: no more are uncut than
            pairs of nodes fit into full parts and one with the rest
packing     where components of more than half the room do not fit without a cut, one edge
"""

from __future__ import annotations

import numpy as np

from optbench.shapes.gnn_training_bound.cut_problem import CutProblem


def counted_cut(problem: CutProblem) -> int:
    """Return the best bound that counting proves."""
    most, m, n = problem.max_part, problem.num_edges, problem.num_nodes
    sizes = np.bincount(problem.components)
    parts = int((-(-sizes // most) - 1).sum())
    degrees = -(-int(np.maximum(problem.degrees - most + 1, 0).sum()) // 2)
    pairs = m - (n * (n - 1) // 2 - problem.pairs_apart)
    crowded = int((2 * sizes > most).sum()) > problem.num_parts
    return max(parts, degrees, pairs, int(crowded), 0)
