"""The array form of a MILP: named blocks of columns and of rows, and the collector of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import OptbenchError
from optbench.model.instance import Floats, Ints
from optbench.model.ragged import ragged

Index = NDArray[np.int32]
Entries = tuple[Any, Any, Any]
"""Matrix entries of a block: row within the block, column of the model, coefficient (a number or an
array)."""


@dataclass(frozen=True, eq=False)
class Columns:
    """A block of variables; ``label[c]`` is the index of the c-th one, ``first`` its column in the
    whole model.
    """

    name: str
    label: Ints
    lower: Floats
    upper: Floats
    integer: bool
    cost: Floats
    first: int

    @property
    def size(self) -> int:
        return len(self.label)


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of rows lower <= A x <= upper, each with one finite side or two equal ones; A by rows
    (CSR).
    """

    name: str
    label: Ints
    ptr: Ints
    col: Index
    value: Floats
    lower: Floats
    upper: Floats

    @property
    def size(self) -> int:
        return len(self.label)


@dataclass(frozen=True, eq=False)
class MilpArrays:
    """minimise cost x + constant over lower <= x <= upper and the rows, some columns integer."""

    name: str
    columns: tuple[Columns, ...]
    rows: tuple[Rows, ...]
    constant: float

    @cached_property
    def lower(self) -> Floats:
        return _joined([block.lower for block in self.columns])

    @cached_property
    def upper(self) -> Floats:
        return _joined([block.upper for block in self.columns])

    @cached_property
    def cost(self) -> Floats:
        return _joined([block.cost for block in self.columns])

    @cached_property
    def integer(self) -> NDArray[np.bool_]:
        return np.repeat(
            [block.integer for block in self.columns], [block.size for block in self.columns]
        ).astype(bool)

    @cached_property
    def row_lower(self) -> Floats:
        return _joined([block.lower for block in self.rows])

    @cached_property
    def row_upper(self) -> Floats:
        return _joined([block.upper for block in self.rows])

    @cached_property
    def matrix(self) -> tuple[Index, Index, Floats]:
        """The rows of all blocks, one below the other: pointers, columns, coefficients."""
        starts = np.cumsum([0] + [len(block.col) for block in self.rows])
        ptr = np.concatenate(
            [block.ptr[:-1] + at for block, at in zip(self.rows, starts, strict=False)]
            + [starts[-1:]]
        )
        col = (
            np.concatenate([block.col for block in self.rows])
            if self.rows
            else np.zeros(0, dtype=np.int32)
        )
        return ptr.astype(np.int32), col, _joined([block.value for block in self.rows])

    @property
    def num_columns(self) -> int:
        return sum(block.size for block in self.columns)

    @property
    def num_rows(self) -> int:
        return sum(block.size for block in self.rows)

    @property
    def num_nonzeros(self) -> int:
        return sum(len(block.col) for block in self.rows)

    @property
    def num_binaries(self) -> int:
        return sum(block.size for block in self.columns if block.integer)

    def block(self, name: str) -> Columns | None:
        """Return the block of columns of that name, if the formulation needed it."""
        return next((block for block in self.columns if block.name == name), None)

    def column_names(self) -> list[str]:
        return [name for block in self.columns for name in _names(block.name, block.label)]

    def row_names(self) -> list[str]:
        return [name for block in self.rows for name in _names(block.name, block.label)]

    def objective(self, x: Floats) -> float:
        return float(self.cost @ x) + self.constant

    def worst_violation(self, x: Floats) -> tuple[float, str]:
        """Largest amount by which a point breaks a bound or a row, and the name of what it
        breaks.
        """
        from scipy.sparse import csr_array

        ptr, col, value = self.matrix
        activity = csr_array((value, col, ptr), shape=(self.num_rows, self.num_columns)) @ x
        excess = np.concatenate(
            (
                np.maximum(self.lower - x, x - self.upper),
                np.maximum(self.row_lower - activity, activity - self.row_upper),
            )
        )
        if len(excess) == 0:
            return 0.0, ""
        worst = int(np.argmax(excess))
        return float(excess[worst]), (self.column_names() + self.row_names())[worst]


class BuildStoppedError(OptbenchError):
    """Building a model was stopped before it was complete."""


class BlockCollector:
    """Collects the blocks of a model under construction; between two blocks it raises
    BuildStoppedError once it should stop.
    """

    def __init__(self, name: str, should_stop: Callable[[], bool] | None = None) -> None:
        self.name, self.should_stop = name, should_stop
        self.num_columns = 0
        self.columns: list[Columns] = []
        self.rows: list[Rows] = []
        self._impossible: int | None = None

    def add_columns(
        self, name: str, label: Any, lower: Any, upper: Any, integer: bool = False
    ) -> int:
        """Add a block of variables; return the column of the first. A block without variables is
        left out.
        """
        self.check()
        first, label = self.num_columns, np.asarray(label, dtype=np.int64)
        n = len(label)
        if n:
            label = label.reshape(n, -1)
            low, high = (np.broadcast_to(np.asarray(v, dtype=float), n) for v in (lower, upper))
            self.columns.append(Columns(name, label, low, high, integer, np.zeros(n), first))
            self.num_columns += n
        return first

    def add_rows(
        self,
        name: str,
        label: Any,
        entries: Sequence[Entries],
        lower: Any,
        upper: Any,
        distinct: bool = True,
    ) -> None:
        """Add a block of rows. Entries at the same place are summed unless ``distinct``; empty rows
        that hold are left out.
        """
        self.check()
        label = np.asarray(label, dtype=np.int64)
        n = len(label)
        if n == 0:
            return
        label = label.reshape(n, -1)
        low, high = (np.broadcast_to(np.asarray(v, dtype=float), n) for v in (lower, upper))
        ptr, col, value = csr(entries, n, self.num_columns, distinct)
        empty = np.diff(ptr) == 0
        if empty.any():
            broken = empty & ((low > 0) | (high < 0))
            if broken.any():
                at = np.flatnonzero(broken)
                void = (at, np.full(len(at), self._void()), np.ones(len(at)))
                ptr, col, value = csr([*entries, void], n, self.num_columns, distinct)
            keep = ~empty | broken
            if not keep.any():
                return
            label, low, high = label[keep], low[keep], high[keep]
            ptr = np.concatenate((ptr[:-1][keep], ptr[-1:]))
        self.rows.append(Rows(name, label, ptr, col, value, low, high))

    def add_runs(
        self,
        name: str,
        label: Ints,
        row: Ints,
        first: Ints,
        size: Ints,
        value: Floats,
        lower: Any,
        upper: Any,
    ) -> None:
        """Add a block of rows made of runs: in ``row``, ``size`` columns from ``first`` on with the
        coefficient ``value``.
        """
        self.check()
        n = len(label)
        if n == 0:
            return
        ptr, _, order = csr([(row, np.zeros(len(row)), np.arange(len(row)))], n, 1, distinct=True)
        run = order.astype(np.int64)
        which, col = ragged(first[run], size[run])
        low, high = (np.broadcast_to(np.asarray(v, dtype=float), n) for v in (lower, upper))
        count = np.concatenate(([0], np.cumsum(size[run])))
        self.rows.append(
            Rows(name, label, count[ptr], col.astype(np.int32), value[run][which], low, high)
        )

    def check(self) -> None:
        """Raise BuildStoppedError if building should stop."""
        if self.should_stop is not None and self.should_stop():
            raise BuildStoppedError(
                f"the MILP of {self.name!r} was stopped while it was being built: there is no "
                "time left"
            )

    def impossible(self, name: str, label: Any) -> None:
        """Add a row that nothing satisfies, for a requirement that the data makes impossible."""
        self.add_rows(name, label, [], 1.0, np.inf)

    def _void(self) -> int:
        """Return a variable fixed to 0 for rows that nothing satisfies: neither Pyomo nor HiGHS
        accepts an empty row.
        """
        if self._impossible is None:
            self._impossible = self.add_columns("nothing", [[0]], 0.0, 0.0)
        return self._impossible

    def finish(self, cost: Floats, constant: float) -> MilpArrays:
        cost = np.concatenate((cost, np.zeros(self.num_columns - len(cost))))
        columns = tuple(
            Columns(
                b.name,
                b.label,
                b.lower,
                b.upper,
                b.integer,
                cost[b.first : b.first + b.size],
                b.first,
            )
            for b in self.columns
        )
        return MilpArrays(self.name, columns, tuple(self.rows), constant)


def csr(
    entries: Sequence[Entries], num_rows: int, num_columns: int, distinct: bool
) -> tuple[Ints, Index, Floats]:
    """Return entries by rows; those of a row keep their order when they are distinct, otherwise
    they are sorted and summed.
    """
    from scipy.sparse import coo_array

    parts = [
        (np.asarray(r), np.asarray(c), np.broadcast_to(np.asarray(v, dtype=float), len(r)))
        for r, c, v in entries
    ]
    if not parts:
        return np.zeros(num_rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0)
    row, col = (
        np.concatenate([part[k] for part in parts]).astype(np.int32, copy=False) for k in (0, 1)
    )
    value = np.concatenate([part[2] for part in parts])
    sparse = coo_array((value, (row, col)), shape=(num_rows, num_columns))
    sparse.has_canonical_format = distinct
    table = sparse.tocsr()
    return table.indptr.astype(np.int64), table.indices, table.data


def _names(block: str, label: Ints) -> list[str]:
    if label.shape[1] == 0:
        return [block]
    return [f"{block}[{','.join(map(str, row))}]" for row in label.tolist()]


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)
