"""Tables of arrays for compiled code: a row of addresses outside, a tuple of bare pointers inside.

Numba counts references of every array in a tuple whenever the tuple is passed: about a microsecond
per call for a plant and a state. Pointers are not counted, a row of addresses crosses from Python
in a microsecond, and rows of several plants and states, of any sizes, make a batch. Python keeps
the arrays alive: a table must outlive every call with its row.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

import numpy as np
from numba.core import types
from numba.extending import intrinsic

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


def table_at(kind: type) -> Any:
    """Return a compiled function from a row of addresses to a ``kind`` of pointers."""
    numba_types = {np.dtype(np.float64): types.float64, np.dtype(np.int64): types.int64}
    pointer_to: Any = types.CPointer
    pointers = [pointer_to(numba_types[dtype]) for dtype in dtypes(kind)]
    tuple_of: Any = types.NamedTuple
    made = tuple_of(pointers, kind)

    @intrinsic
    def at(typing_context, row):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            array = context.make_array(signature.args[0])(context, builder, args[0])
            values = []
            for k, pointer in enumerate(pointers):
                address = builder.load(
                    builder.gep(array.data, [context.get_constant(types.intp, k)])
                )
                values.append(builder.inttoptr(address, context.get_value_type(pointer)))
            return context.make_tuple(builder, made, values)

        return made(row), build

    return at
