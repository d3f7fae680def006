"""Tables of arrays for compiled code: a row of addresses outside, one pointer to that row inside.

Numba counts references of every array in a tuple whenever the tuple is passed: about a microsecond
per call for a plant and a state. A tuple of bare pointers is copied, a hundred words per call. One
pointer costs nothing to pass, and an array's address is loaded where it is used, which the compiler
may do once: rows never change during a call. A row crosses from Python in a microsecond, and rows
of several plants and states, of any sizes, make a batch. Python keeps the arrays alive: a table
must outlive every call with its row, and so must the row.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
)

from optbench.model.instance import Floats, Ints


def addresses(table: Any) -> Ints:
    """Return one row: the address of each array of a table (a NamedTuple of one-dimensional int64
    and float64 arrays).
    """
    for name, array, dtype in zip(table._fields, table, dtypes(table.__class__), strict=True):
        if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous:
            raise TypeError(
                f"{type(table).__name__}.{name}: {array.dtype} of shape {array.shape}, expected "
                f"contiguous {dtype}"
            )
    return np.array([array.ctypes.data for array in table], dtype=np.int64)


@cache
def dtypes(kind: type) -> tuple[np.dtype[Any], ...]:
    """Return the declared element type of each field."""
    hints = get_type_hints(kind)
    known = {Floats: np.dtype(np.float64), Ints: np.dtype(np.int64)}
    return tuple(known[hints[name]] for name in kind._fields)  # type: ignore[attr-defined]


NUMBA_TYPES = {np.dtype(np.float64): types.float64, np.dtype(np.int64): types.int64}
WORD = ir.IntType(64)
# numba has no types.
NumbaType: Any = types.Type
PointerTo: Any = types.CPointer
Primitive: Any = models.PrimitiveModel
Attributes: Any = AttributeTemplate


class TablePointer(NumbaType):  # type: ignore[misc]
    """The type of a table in compiled code: its attributes are pointers to its arrays."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        super().__init__(name=f"TablePointer({kind.__module__}.{kind.__name__})")

    def pointer(self, field: str) -> Any:
        """Return the type of a field, a pointer."""
        return PointerTo(NUMBA_TYPES[dtypes(self.kind)[self.position(field)]])

    def position(self, field: str) -> int:
        return self.kind._fields.index(field)  # type: ignore[attr-defined]


@register_model(TablePointer)
class TablePointerModel(Primitive):  # type: ignore[misc]
    """In machine code a table is the address of its row."""

    def __init__(self, manager: Any, table: TablePointer) -> None:
        super().__init__(manager, table, WORD.as_pointer())


@infer_getattr
class TableFields(Attributes):  # type: ignore[misc]
    """The types of the fields of a table."""

    key = TablePointer

    def generic_resolve(self, table: TablePointer, field: str) -> Any:
        if field not in table.kind._fields:  # type: ignore[attr-defined]
            return None
        return table.pointer(field)


@lower_getattr_generic(TablePointer)  # type: ignore[no-untyped-call, untyped-decorator]
def load_field(context: Any, builder: Any, table: TablePointer, value: Any, field: str) -> Any:
    """Load the address of an array from the row."""
    place = builder.gep(value, [context.get_constant(types.intp, table.position(field))])
    address = builder.load(place)
    address.set_metadata("invariant.load", builder.module.add_metadata([]))
    return builder.inttoptr(address, context.get_value_type(table.pointer(field)))


def table_at(kind: type) -> Any:
    """Return a compiled function from a row of addresses to the table of a ``kind``."""
    made = TablePointer(kind)

    @intrinsic
    def at(typing_context, row):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            array = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.bitcast(array.data, WORD.as_pointer())

        return made(row), build

    return at
