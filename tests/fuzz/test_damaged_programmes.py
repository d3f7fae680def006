"""Damaged MPS, LP and JSON files of programmes are refused with a reason, or read; nothing else."""

from __future__ import annotations

import json

import pytest

from optbench.errors import OptbenchError
from optbench.shapes.milp.lp_writer import write_lp
from optbench.shapes.milp.milp_files import FORMATS
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.milp.mps_writer import write_mps
from tests.fuzz import damage
from tests.reference.random_milps import random_milp
from tests.shapes.milp.test_milp_texts import LP, MPS


def texts(format: str, seed: int) -> str:
    """A file by hand, or one of a random programme."""
    program = random_milp("mixed", seed % 7)
    if format == "milp":
        return json.dumps(MILPS.write(MILPS.instance(program)))
    by_hand, write = (MPS, write_mps) if format == "mps" else (LP, write_lp)
    return by_hand if seed % 2 else write(program)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_damaged_file_is_refused_or_read(format: str) -> None:
    outcomes = {"read": 0, "refused": 0}
    for seed in range(150):
        data = damage.damaged(texts(format, seed).encode(), seed)[1]
        text = data.decode("utf-8", "replace")
        try:
            FORMATS[format].read(text, "x")
            outcomes["read"] += 1
        except OptbenchError as error:
            assert str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 5
