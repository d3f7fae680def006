"""Events of the disjunctive formulation: 2i is the start of task i, 2i + 1 its end; the order of
two events may be known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Bools, Floats, Ints
from optbench.model.ragged import ragged
from optbench.model.windows import by_source
from optbench.views.milp.arrays import Entries
from optbench.views.milp.frame import Frame


@dataclass(frozen=True, eq=False)
class Events:
    """Earliest and latest time of each event, and ``reach[i, j]``: j comes after i by
    precedence.
    """

    base: Frame
    earliest: Floats
    latest: Floats
    reach: Bools

    def decide(self, u: Ints, v: Ints) -> tuple[Bools, Bools]:
        """Return the pairs of events of which u comes at or before v in every schedule, and in none
        (among those that matter).

        An end never matters before a start of the same task, or of one that precedes it: there is
        no positive time between them.
        """
        i, j = u // 2, v // 2
        end_to_start = (u % 2 == 1) & (v % 2 == 0)
        always = (
            self.reach[i, j]
            | ((i == j) & ~end_to_start)
            | ((i != j) & (self.latest[u] <= self.earliest[v]))
        )
        never = (self.earliest[u] > self.latest[v]) | (end_to_start & ((i == j) | self.reach[j, i]))
        return always & ~never, never

    def terms(self, row: Ints, event: Ints, sign: float, start: int, mode: int) -> list[Entries]:
        """Return sign · time(event) as entries: the start, and for an end the duration of the
        chosen mode.
        """
        pairs = self.base.instance.pairs
        task, ends = event // 2, np.flatnonzero(event % 2 == 1)
        which, pair = ragged(pairs.ptr[task[ends]], np.diff(pairs.ptr)[task[ends]])
        keep = pairs.duration[pair] > 0
        which, pair = which[keep], pair[keep]
        return [
            (row, start + task, sign),
            (row[ends[which]], mode + pair, sign * pairs.duration[pair].astype(float)),
        ]


def events_of(base: Frame) -> Events:
    n, shortest = base.instance.num_tasks, base.windows.shortest
    earliest, latest = (
        np.stack(parts, axis=1).ravel()
        for parts in ((base.head, base.head + shortest), (base.latest - shortest, base.latest))
    )
    edges, reach = base.instance.edges, np.zeros((n, n), dtype=bool)
    for e in reversed(by_source(base.instance)):
        i, j = int(edges.source[e]), int(edges.target[e])
        reach[i] |= reach[j]
        reach[i, j] = True
    return Events(base, earliest, latest, reach)


def least_times(head: Floats, source: Ints, target: Ints, weight: Floats) -> Floats | None:
    """Return the least s >= head with s[target] >= s[source] + weight, by relaxation; None when
    there is none.
    """
    s = head.astype(float)
    for _ in range(len(s) + 1):
        new = s.copy()
        np.maximum.at(new, target, s[source] + weight)
        if (new <= s + 1e-12 * np.maximum(1.0, np.abs(s))).all():
            return s
        s = new
    return None
