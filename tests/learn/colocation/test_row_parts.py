"""Rows as networks see them: whose cells, which neighbours, and what a run reveals."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.learn.colocation.measured_draws import draw_runs
from optbench.learn.colocation.residuals import calibrate, usable_cells
from optbench.learn.colocation.row_parts import (
    allowed_neighbours,
    alone_part,
    has_relatives,
    neighbour_means,
    ratio_part,
)
from optbench.learn.colocation.row_tables import KnownRows
from tests.learn.colocation.small_facts import by_hand, synthetic, synthetic_facts


def test_a_row_holds_what_the_tables_say() -> None:
    """a beside b at 6 of 10 per second, b beside a at 16 of 20; the last column is the mean."""
    rows = KnownRows.of(by_hand())
    assert rows.known.tolist() == [0, 1]
    assert np.exp(rows.ratio[0, 0, 0, :2]) == pytest.approx([0.5, 0.6])
    assert np.exp(rows.ratio[0, 1, 0, :2]) == pytest.approx([0.5, 0.8])
    assert rows.ratio[0, 0, 0, 2] == pytest.approx((np.log(0.5) + np.log(0.6)) / 2)
    assert np.isnan(rows.ratio[2, 0, 0]).all()


def test_no_row_holds_cells_of_types_that_are_not_public() -> None:
    new = [0, 1, 2, 3, 4, 5, 20]
    rows = KnownRows.of(synthetic_facts())
    assert not np.isin(new, rows.known).any()
    assert np.isnan(rows.alone[new]).all() and np.isnan(rows.ratio[new]).all()
    assert not np.isin(new, alone_part(rows).members).any()
    assert not np.isin(new, ratio_part(rows).partner).any()


def test_neighbours_are_not_itself_nor_without_relatives_one_of_these() -> None:
    part = ratio_part(KnownRows.of(synthetic_facts()))
    types = part.members
    family = np.array([each.family for each in synthetic().job_types])
    for relatives in (False, True):
        allowed = allowed_neighbours(part, types, relatives)
        assert not allowed[types[:, None] == part.members[None, :]].any()
        kin = family[types][:, None] == family[part.members][None, :]
        assert allowed[kin].any() == relatives
    assert has_relatives(part, np.array([0, 20])).tolist() == [False, True]


def test_cells_beside_itself_and_relatives_are_none_of_a_stranger() -> None:
    part = ratio_part(KnownRows.of(synthetic_facts()))
    types = part.members
    family = np.array([each.family for each in synthetic().job_types])
    usable = usable_cells(part, types, False)
    kin = (family[types][:, None] == family[part.partner][None, :]) & (part.partner >= 0)
    assert not usable[kin].any() and usable[~kin].all()
    own = types[:, None] == part.partner[None, :]
    assert np.array_equal(usable_cells(part, types, True), ~own)


def test_the_neighbours_mean_by_hand() -> None:
    """c has no relatives: κ = 1/50 for a and b each (equal batch sizes), and both weigh the same,
    so the mean of the logarithms of 10 and 20 is that of √200."""
    part = alone_part(KnownRows.of(by_hand()))
    new = np.array([2])
    found = neighbour_means(part, new, allowed_neighbours(part, new, True))
    assert found[0, 0] == pytest.approx(np.log(np.sqrt(200.0)))


def test_a_run_reveals_both_jobs_and_nothing_that_does_not_fit() -> None:
    part = ratio_part(KnownRows.of(synthetic_facts()))
    rest = np.where(np.isnan(part.table), np.nan, 0.1 * np.arange(part.num_columns))
    draws = draw_runs(part, rest, np.full(len(rest), 3), 0.0, np.random.default_rng(0))
    assert (draws.there.sum(axis=1) == 6).all()
    assert np.array_equal(part.twin[draws.columns[:, :3]], draws.columns[:, 3:])
    assert (part.direction[draws.columns[:, :3]] == 0).all()
    assert (part.partner[draws.columns] >= 0).all()
    assert not np.isnan(np.take_along_axis(rest, draws.columns, axis=1)).any()
    # Without noise only the error of an estimated throughput alone changes a residual.
    exact = draws.sd == 0
    wanted = np.take_along_axis(rest, draws.columns, axis=1)
    assert draws.residual[exact] == pytest.approx(wanted[exact])


def test_the_share_of_a_correction_is_that_of_least_squares() -> None:
    """Goals 1, 2 and corrections 2, 2: the share is (2 + 4) / 8 = 3/4; errors fall from 3/2 to
    (1/2 + 1/2) / 2. A correction in the wrong direction is left out."""
    goal, shift, one = np.array([1.0, 2.0]), np.array([2.0, 2.0]), np.ones(2)
    every = np.ones(2, dtype=np.bool_)
    share, factor, before, after = calibrate(goal, shift, one, every)
    assert (share, before, after) == pytest.approx((0.75, 1.5, 0.5))
    # Residuals are ∓ 1/2, whose squares are 1/4 of the stated variance.
    assert factor == pytest.approx(0.25)
    assert calibrate(goal, -shift, one, every)[0] == 0.0
