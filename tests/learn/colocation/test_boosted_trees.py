"""Trees: the same seed gives the same estimates, and they are no worse than their inputs."""

from __future__ import annotations

from functools import cache

import numpy as np

from optbench.learn.colocation.boosted_trees import BoostedTrees
from optbench.learn.colocation.look_up import LookUp
from optbench.learn.colocation.row_tables import KnownRows
from tests.learn.colocation.small_facts import some_runs, synthetic, synthetic_facts


@cache
def model(seed: int = 0) -> BoostedTrees:
    return BoostedTrees.of(KnownRows.of(synthetic_facts()), seed)


def test_the_same_seed_gives_the_same_estimates() -> None:
    again = BoostedTrees.of(KnownRows.of(synthetic_facts()), 0)
    found = [LookUp(synthetic_facts(), each).estimates() for each in (model(), again)]
    assert np.array_equal(found[0].beside_per_s, found[1].beside_per_s)


def test_validation_errors_do_not_rise() -> None:
    """The share of the correction is a least-squares one: squared errors cannot rise, and absolute
    ones by little."""
    for part in (model().alone_part, model().ratio_part):
        before, after = part.calibration.error_before, part.calibration.error_after
        assert all(a <= 1.05 * b for a, b in zip(after, before, strict=True))


def test_measurements_change_estimates_and_the_past_stays() -> None:
    estimator = LookUp(synthetic_facts(), model())
    first = estimator.estimates()
    kept = first.beside_per_s.copy()
    estimator.learn(some_runs(synthetic(), 0, [8, 9, 10]))
    second = estimator.estimates()
    assert np.isfinite(second.beside_per_s).all() and (second.ratio_sd >= 0).all()
    assert not np.array_equal(second.beside_per_s[0, 0, 11:], kept[0, 0, 11:])
    assert np.array_equal(first.beside_per_s, kept)
