"""A linear model of what freeing a neighbourhood will gain, by which the next one is chosen.

A neighbourhood N of a schedule has features f(N): means over its tasks, relative to the whole, of
the losses at the network's prices, of what the network's due dates and the deadlines are missed by,
of importance and of attempts so far; how its tasks lie together in time, on classes of devices and
in chains of waiting; and which selector made it. The expected gain is ⟨w, f(N)⟩ up to what is equal
for all neighbourhoods of a round; w is fitted by ridge regression within rounds on training seeds
(``benchmarks/neighbourhood_gains.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from optbench.model.instance import Floats, Ints

from .neighbourhoods import SELECTORS, PointView

SHIPPED = Path(__file__).with_name("neighbourhood_weights.json")
MEANS = ("loss", "network_lateness", "tardiness", "importance", "attempts", "end", "length")
SHAPES = ("spread", "one_class", "chained", "size")
FEATURES = (*MEANS, *SHAPES, *(f"by_{name}" for name in SELECTORS))
# Features that the network makes.
OF_NETWORK = ("loss", "network_lateness", "by_loss")
# Means over a neighbourhood count up to this many times that of the whole.
MOST = 8.0


@dataclass(frozen=True, eq=False)
class TaskColumns:
    """A column of relative numbers per task for each of MEANS; 1 is the mean."""

    view: PointView
    table: Floats

    def features(self, name: str, freed: Ints) -> Floats:
        """Return the features of a neighbourhood that a selector has made."""
        view = self.view
        inside = np.zeros(len(view.start), dtype=bool)
        inside[freed] = True
        before = view.waits_for[freed]
        shapes = (
            view.start[freed].std() / max(1e-9, float(view.start.std())),
            np.bincount(view.pool_class[freed]).max() / len(freed),
            (inside[before] & (before >= 0)).mean(),
            len(freed) / len(inside),
        )
        selector = [float(name == each) for each in SELECTORS]
        return np.array([*np.log1p(self.table[freed].mean(axis=0)), *shapes, *selector])


def columns_of(view: PointView, attempts: Floats) -> TaskColumns:
    """Return the columns of a schedule; ``attempts`` counts how often each task was freed."""
    numbers = view.surroundings.scores.numbers
    late = numbers.late_price * np.maximum(0.0, view.end - numbers.due)
    columns = (
        view.loss, late, view.tardiness, view.surroundings.importance, attempts + 1.0, view.end,
        view.end - view.start,
    )  # fmt: skip
    table = [np.minimum(MOST, each / max(1e-12, float(each.mean()))) for each in columns]
    return TaskColumns(view, np.stack(table, axis=-1))


@cache
def shipped_weights() -> tuple[float, ...]:
    """Return w of the shipped model, in the order of FEATURES."""
    found = json.loads(SHIPPED.read_text(encoding="utf-8"))["weights"]
    return tuple(float(found.get(name, 0.0)) for name in FEATURES)


def fit(
    rounds: list[tuple[Floats, Floats]], ridge: float, left_out: tuple[str, ...] = ()
) -> Floats:
    """Return w from the features and gains of the neighbourhoods of each round."""
    rows = np.concatenate([table - table.mean(axis=0) for table, _ in rounds])
    gains = np.concatenate([gain - gain.mean() for _, gain in rounds])
    rows[:, [FEATURES.index(name) for name in left_out]] = 0.0
    scale = np.maximum(1e-9, rows.std(axis=0))
    scaled = rows / scale
    normal = scaled.T @ scaled + ridge * len(rows) * np.eye(len(FEATURES))
    weights = np.linalg.solve(normal, scaled.T @ gains) / scale
    return np.asarray(np.where(rows.any(axis=0), weights, 0.0))
