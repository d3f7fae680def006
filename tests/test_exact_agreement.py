"""Brute force, CP-SAT and HiGHS agree on tiny random instances, and no bound exceeds the optimum.

A slice of what `benchmarks/exact_agreement.py` does on 300 seeds.
"""

from __future__ import annotations

import pytest

from tests.reference.agreement import compare
from tests.reference.random_instances import feature_names, tiny_instance

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_brute_force_cpsat_and_highs_agree(seed: int) -> None:
    assert compare(seed, ("cpsat", "highs"), continuous=("highs",)).wrong == []


def test_the_slice_meets_every_feature() -> None:
    met = frozenset().union(*(feature_names(tiny_instance(seed)) for seed in SEEDS))
    every = frozenset().union(*(feature_names(tiny_instance(seed)) for seed in range(300)))
    assert met == every
