"""The two parts of a row, throughputs alone and ratios, as networks see them: columns, neighbours.

A column is described by its mean and its loadings over the known rows (``LowRank``), its GPU type
and its direction. A new job is described by its k most similar known jobs, one token each: how
alike they are (family, name, batch size, GPUs) and where their row lies in few dimensions. The
neighbours' mean of a cell,

    y0[t, j] = Σ_n (κ(t, n) + c / N) y[n, j] / Σ_n (κ(t, n) + c / N)

over the N known rows n that have the cell, is what networks correct, and what remains without them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.job_features import JobFeatures
from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.matrix_completion import best_rank, ratio_rows
from optbench.learn.colocation.row_tables import KnownRows, nan_mean
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

NEIGHBOURS = 5
BACKGROUND = 0.1
# What a token says of likeness, beside where the neighbour's row lies.
LIKENESS = 6
QUERY = 3


@dataclass(frozen=True)
class RowPart:
    """Public rows (N, J) of one part; NaN where nothing is known.

    ``members`` are the job types of the rows, ``partner`` those of the columns (-1: none), ``twin``
    the column that a run reveals along with one: the partner's, or itself."""

    table: Floats
    members: Ints
    group: Ints
    direction: Ints
    partner: Ints
    twin: Ints
    features: JobFeatures
    rank: int
    scale: float

    @property
    def num_rows(self) -> int:
        return len(self.members)

    @property
    def num_columns(self) -> int:
        return len(self.group)

    def kernel(self, types: Ints) -> Floats:
        """κ of these job types and those of the rows."""
        out: Floats = self.features.similarity()[np.ix_(types, self.members)]
        return out


def alone_part(rows: KnownRows) -> RowPart:
    """The part of throughputs alone: a column per GPU type."""
    members = np.flatnonzero(rows.has_alone)
    table = rows.alone[members]
    g = rows.num_gpu_types
    none = np.full(g, -1, dtype=np.int64)
    empty = np.isnan(table).all(axis=0)
    table = np.where(empty, nan_mean(table, 1)[:, None], table)
    zero = np.zeros(g, dtype=np.int64)
    every = np.arange(g)
    return RowPart(table, members, every, zero, none, every, rows.features, g, _scale(table))


def ratio_part(rows: KnownRows) -> RowPart:
    """The part of ratios: a column per direction, GPU type and known partner, or their mean."""
    table = ratio_rows(rows)
    g, k = rows.num_gpu_types, rows.num_known
    shape = (2, g, k + 1)
    direction, group, place = (each.reshape(-1) for each in np.indices(shape))
    partner = np.append(rows.known, -1)[place]
    twin = np.arange(2 * g * (k + 1)).reshape(shape)[::-1].reshape(-1)
    rank = best_rank(rows, table)
    return RowPart(
        table, rows.known, group, direction, partner, twin, rows.features, rank, _scale(table)
    )


def _scale(table: Floats) -> float:
    """Standard deviation of a cell around its column's mean."""
    spread = float(np.sqrt(nan_mean(((table - nan_mean(table, 0)) ** 2).reshape(-1), 0, 1.0)))
    return max(spread, 1e-3)


def allowed_neighbours(part: RowPart, types: Ints, family: bool) -> Bools:
    """Rows that may be neighbours of each type: not itself, and unless ``family`` no relative."""
    own = types[:, None] == part.members[None, :]
    kin = part.features.same_family()[np.ix_(types, part.members)]
    out: Bools = ~own & (family | ~kin)
    return out


def neighbour_means(part: RowPart, types: Ints, allowed: Bools) -> Floats:
    """y0 of each type (n, J)."""
    weight = np.where(allowed, part.kernel(types) + BACKGROUND / max(1, part.num_rows), 0.0)
    there = ~np.isnan(part.table)
    total = weight @ np.where(there, part.table, 0.0)
    count = weight @ there
    mean = nan_mean(part.table, 0, 0.0)
    out: Floats = np.divide(
        total, count, out=np.broadcast_to(mean, total.shape).copy(), where=count > 0
    )
    return out


def neighbour_tokens(part: RowPart, basis: LowRank, types: Ints, allowed: Bools) -> Floats:
    """Tokens (n, k, d) of the most similar known jobs, the most similar one last."""
    kernel = np.where(allowed, part.kernel(types), -1.0)
    # Of equals in likeness the first ones are taken.
    order = np.argsort(-kernel, axis=1, kind="stable")[:, :NEIGHBOURS][:, ::-1]
    _, _, latent = basis.posterior(part.table, np.where(np.isnan(part.table), np.inf, 0.05))
    f, mine = part.features, types[:, None]
    theirs = part.members[order]
    batch = f.log_batch[mine] - f.log_batch[theirs]
    gpus = f.log_gpus[mine] - f.log_gpus[theirs]
    alike = [
        (f.family[mine] == f.family[theirs]).astype(float),
        f.same_name[mine, theirs].astype(float),
        batch / 4,
        np.abs(batch) / 4,
        gpus / 3,
        np.take_along_axis(kernel, order, axis=1),
    ]
    tokens = np.concatenate([np.stack(alike, axis=2), latent[order]], axis=2)
    there = np.take_along_axis(allowed, order, axis=1)
    tokens = np.where(there[:, :, None], tokens, 0.0)
    missing = NEIGHBOURS - tokens.shape[1]
    return np.pad(tokens, ((0, 0), (missing, 0), (0, 0)))


def queries(part: RowPart, types: Ints, family: bool) -> Floats:
    """What is said of a new job itself (n, 3)."""
    f = part.features
    middle = float(f.log_batch[part.members].mean())
    return np.stack(
        [
            (f.log_batch[types] - middle) / 4,
            f.log_gpus[types] / 3,
            np.full(len(types), float(family)),
        ],
        axis=1,
    )


def column_words(part: RowPart, basis: LowRank) -> Floats:
    """The description of each column (J, h)."""
    gpus = np.eye(int(part.group.max()) + 1)[part.group]
    mean = basis.mean - basis.mean.mean()
    return np.concatenate(
        [
            mean[:, None] / part.scale,
            basis.loadings / part.scale,
            gpus,
            part.direction[:, None],
            (part.partner < 0)[:, None],
        ],
        axis=1,
    ).astype(float)


def has_relatives(part: RowPart, types: Ints) -> Bools:
    """Whether a known job of the same family exists, other than the type itself."""
    kin = allowed_neighbours(part, types, True) & ~allowed_neighbours(part, types, False)
    return np.asarray(kin.any(axis=1), dtype=np.bool_)
