"""The interference model: its formula by hand, and numbers that look like measured ones."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.errors import ParameterError
from optbench.plugins.problems._interference import (
    INTERFERENCE,
    _ratios,
    _uses,
    interference_tables,
)


def test_two_jobs_of_one_resource_share_it() -> None:
    """Both use all of one resource: e = 2 (1 + i), and nothing of the others; the ratio is
    1 / (2 (1 + i))."""
    use = np.zeros((1, 2, 4))
    use[:, :, 0] = 1.0
    found = _ratios(use, np.zeros((1, 2, 2)))
    assert found == pytest.approx(np.full((1, 2, 2), 1 / (2 * (1 + INTERFERENCE[0]))))


def test_jobs_of_different_resources_do_not_slow_each_other_down() -> None:
    use = np.zeros((1, 2, 4))
    use[0, 0, 0] = use[0, 1, 3] = 1.0
    found = _ratios(use, np.zeros((1, 2, 2)))
    assert found[0, 0, 1] == found[0, 1, 0] == 1.0


def test_a_step_takes_at_least_its_longest_resource() -> None:
    """Seconds 2 and 2 at p = 4 take 2 · 2^(1/4), and use 2^(-1/4) of each resource."""
    use, step_s = _uses(np.array([[2.0, 2.0]]), np.ones((1, 2)))
    assert step_s[0, 0] == pytest.approx(2 * 2**0.25)
    assert use[0, 0] == pytest.approx([2**-0.25, 2**-0.25])


def test_the_tables_look_like_measured_ones() -> None:
    """In the tables of Gavel 13 to 25 % of the pairs are worse than time slicing, and 3 to 13 % do
    not fit; relatives are more alike than strangers."""
    tables = interference_tables(120, 3, 1)
    fits = tables.beside_per_s > 0
    ratio = tables.beside_per_s / tables.alone_per_s[:, :, None]
    assert ratio.min() >= 0 and ratio.max() <= 1
    worse = (ratio + np.swapaxes(ratio, 1, 2) < 1)[fits].mean()
    assert 0.1 < worse < 0.3
    assert 0 < (~fits).mean() < 0.2
    assert np.array_equal(fits, np.swapaxes(fits, 1, 2))
    means = np.array([r[f].mean() for r, f in zip(ratio[0], fits[0], strict=True)])
    within = np.abs(np.diff(means.reshape(-1, 6), axis=1)).mean()
    assert within < 0.5 * np.abs(means[:, None] - means[None, :]).mean()


def test_the_same_seed_gives_the_same_tables_and_any_number_of_types() -> None:
    one, other = interference_tables(7, 8, 5), interference_tables(7, 8, 5)
    assert np.array_equal(one.beside_per_s, other.beside_per_s)
    assert one.job_types == other.job_types
    assert one.beside_per_s.shape == (8, 7, 7)
    assert not np.array_equal(one.alone_per_s, interference_tables(7, 8, 6).alone_per_s)


def test_no_types_are_refused() -> None:
    with pytest.raises(ParameterError, match="num_types is 0"):
        interference_tables(0)
