"""Whether pairs fit: known ones are certain, large jobs fit less often, gangs never."""

from __future__ import annotations

import numpy as np

from optbench.learn.colocation.job_features import JobFeatures
from optbench.learn.colocation.pair_fit import pair_fit_probability
from optbench.shapes.colocation.colocation_data import JobType


def small_and_large() -> tuple[JobFeatures, np.ndarray]:
    """Three small jobs, two large ones that do not fit beside each other, a new one, a gang."""
    types = [JobType(f"s{k}", f"S{k}", 8.0) for k in range(3)]
    types += [JobType(f"l{k}", f"L{k}", 8.0) for k in range(2)]
    types += [JobType("new", "N", 8.0), JobType("gang", "S0", 8.0, 4)]
    known = np.full((1, 7, 7), np.nan)
    known[0, :5, :5] = 1.0
    known[0, 3:5, 3:5] = 0.0
    known[0, 6, :] = known[0, :, 6] = 0.0
    return JobFeatures.of(types), known


def test_known_pairs_are_certain_and_gangs_run_alone() -> None:
    features, known = small_and_large()
    found = pair_fit_probability(features, known)
    there = ~np.isnan(known)
    assert np.array_equal(found[there], known[there])
    assert (found[0, 6] == 0).all()
    assert np.allclose(found, np.swapaxes(found, 1, 2))


def test_a_new_job_fits_rather_beside_a_small_one_than_beside_a_large_one() -> None:
    features, known = small_and_large()
    found = pair_fit_probability(features, known)
    assert 0 < found[0, 5, 3] < found[0, 5, 0] < 1
    assert found[0, 5, 3] - found[0, 5, 4] == np.float64(0) or np.isclose(
        found[0, 5, 3], found[0, 5, 4]
    )


def test_a_misfit_beside_a_small_job_makes_the_others_less_likely() -> None:
    features, known = small_and_large()
    before = pair_fit_probability(features, known)
    known[0, 5, 0] = known[0, 0, 5] = 0.0
    after = pair_fit_probability(features, known)
    assert after[0, 5, 1] < before[0, 5, 1]
    assert after[0, 5, 3] < before[0, 5, 3]


def test_a_relative_of_a_large_job_is_taken_for_large() -> None:
    types = [JobType("s", "S", 8.0), JobType("t", "T", 8.0), JobType("l (batch size 8)", "L", 8.0)]
    types += [JobType("l (batch size 16)", "L", 16.0), JobType("n", "N", 16.0)]
    known = np.full((1, 5, 5), np.nan)
    known[0, :3, :3] = 1.0
    known[0, 2, :3] = known[0, :3, 2] = 0.0
    found = pair_fit_probability(JobFeatures.of(types), known)
    assert found[0, 3, 0] < found[0, 4, 0]
