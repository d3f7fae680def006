"""Plans of every type: integers count alike whatever their width, all else breaks the form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.shapes.gnn_training.training_data import DataGraph, DeviceLinks
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from tests.shapes.gnn_training.small_training import FAST, instance, plan

DEVICES = 20
WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">i8"]
GOOD = [0, 0, 0, 1]
FORM = "it must be a one-dimensional array of integers that fit int64"


def chain() -> Any:
    """A path of forty nodes in twenty parts on twenty devices."""
    tail = np.arange(39, dtype=np.int64)
    flat = np.full((DEVICES, DEVICES), 0.5)
    return instance(
        graph=DataGraph(40, tail, tail + 1),
        devices=tuple(replace(FAST, name=f"d{k}", memory_gb=5.7) for k in range(DEVICES)),
        links=DeviceLinks(flat, flat, 0.25, 2.0),
        num_parts=DEVICES,
        max_part=2,
    )


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("memory_gb", [5.7, 1.0])
def test_narrow_integers_do_not_wrap(dtype: str, memory_gb: float) -> None:
    """19 × 20 + 19 = 399 is beyond int8 and uint8, where rows would be sent to other devices."""
    made = chain()
    small = tuple(replace(each, memory_gb=memory_gb) for each in made.data.devices)
    made = made.shape.instance("chain", replace(made.data, devices=small))
    part, device = np.arange(40) // 2, np.arange(DEVICES)[::-1]
    zero = np.zeros(DEVICES)
    wide = made.shape.verdict_of(made, TrainingPlan(part, device, zero.astype(np.int64)))
    columns = [each.astype(dtype) for each in (part, device, zero)]
    assert (
        made.shape.verdict_of(
            made, TrainingPlan(columns[0], columns[1], columns[2], np.zeros(0, dtype))
        )
        == wide
    )
    # A part keeps 2 GB of nodes and, of two arcs to others, 2 × 0.1 GB of rows, and 1 GB besides.
    assert wide.feasible == (memory_gb == 5.7)
    assert wide.metrics["memory_gb"] == pytest.approx(3.2)


@pytest.mark.parametrize("column", ["part", "device", "clock", "fusions"])
@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (np.array([0.0, 1.0]), "an array of float64 in 1 dimensions"),
        (np.array([np.nan, 0.0]), "an array of float64 in 1 dimensions"),
        (np.array([False, True]), "an array of bool in 1 dimensions"),
        (np.array([0, 1], dtype=object), "an array of object in 1 dimensions"),
        (np.array([[0], [1]]), "an array of int64 in 2 dimensions"),
        (np.array(0), "an array of int64 in 0 dimensions"),
        (np.array([0, 2**64 - 1], dtype=np.uint64), "an array of uint64 in 1 dimensions"),
        ([0, 1], "of type list"),
        (None, "of type NoneType"),
    ],
)
def test_what_is_no_array_of_integers_is_a_violation(column: str, wrong: Any, kind: str) -> None:
    made = instance()
    given = replace(plan(GOOD), **{column: wrong})
    (found,) = made.shape.verdict_of(made, given).violations
    assert (found.constraint, found.message) == ("form", f"{column} is {kind}; {FORM}")


@pytest.mark.parametrize("wrong", ["off", 0, None, 1.0])
def test_overlap_is_true_or_false(wrong: Any) -> None:
    made = instance()
    (found,) = made.shape.verdict_of(made, replace(plan(GOOD), overlap=wrong)).violations
    assert found.constraint == "form"
    assert found.message == f"overlap is {wrong!r}; it must be True or False"


def test_an_array_without_entries_is_the_identity() -> None:
    made, none = instance(), np.array([])
    found = made.shape.verdict_of(made, TrainingPlan(np.array(GOOD), none, none, none))
    assert found == made.shape.verdict_of(made, plan(GOOD))
