"""Estimators: measured cells are their means, the past does not change, nothing true is needed."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from optbench.learn.colocation.estimators import (
    additive_completion,
    estimator_named,
    frozen_partner_mean,
    matrix_completion,
    partner_mean,
)
from optbench.learn.colocation.look_up import LookUp
from optbench.learn.colocation.matrix_completion import MatrixCompletion
from optbench.learn.colocation.row_tables import KnownRows
from optbench.shapes.colocation.colocation_process import Measurement
from optbench.shapes.colocation.epoch_physics import Misfit
from optbench.shapes.colocation.estimates import Estimates
from tests.learn.colocation.small_facts import (
    by_hand,
    facts_of,
    some_runs,
    synthetic,
    synthetic_facts,
    told,
)

LEARNING = (partner_mean, matrix_completion, additive_completion)


def same(one: Estimates, other: Estimates) -> bool:
    return all(
        np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(Estimates)
    )


def test_the_partner_mean_by_hand() -> None:
    """c beside a: the mean of a beside a (0.5) and b beside a (0.8) is 0.65; c beside b: that of
    0.6 and 0.5 is 0.55. a beside c: the mean of 0.5 and 0.6; b beside c: that of 0.8 and 0.5. c
    alone: the geometric mean of 10 and 20."""
    found = partner_mean(by_hand()).estimates()
    alone = np.sqrt(200.0)
    assert found.alone_per_s[0] == pytest.approx([10.0, 20.0, alone])
    assert found.beside_per_s[0, 2, :2] == pytest.approx([0.65 * alone, 0.55 * alone])
    assert found.beside_per_s[0, :2, 2] == pytest.approx([0.55 * 10.0, 0.65 * 20.0])
    # Public cells are certain, others are not.
    assert found.alone_log_sd[0, :2] == pytest.approx([0.0, 0.0])
    assert (found.alone_log_sd[0, 2], found.ratio_sd[0, 2, 0]) > (0.0, 0.0)


@pytest.mark.parametrize("make", LEARNING)
def test_a_measured_cell_is_its_mean(make: type) -> None:
    """30 and 34 per second alone, and 12 and 15 beside a: the means are 32 and 13.5; two of noise
    0.03 deviate by 0.03 / √2."""
    estimator = make(by_hand())
    estimator.learn(told([Measurement(0, 0, 2, -1, 30.0), Measurement(0, 0, 2, 0, 12.0)]))
    estimator.learn(told([Measurement(0, 0, 2, -1, 34.0), Measurement(0, 0, 2, 0, 15.0)]))
    found = estimator.estimates()
    assert found.alone_per_s[0, 2] == pytest.approx(32.0)
    assert found.beside_per_s[0, 2, 0] == pytest.approx(13.5)
    assert found.alone_log_sd[0, 2] == pytest.approx(0.03 / np.sqrt(2))
    assert found.ratio_sd[0, 2, 0] == pytest.approx(13.5 / 32.0 * 0.03 / np.sqrt(2))
    assert found.fits[0, 2, 0] == found.fits[0, 0, 2] == 1.0


@pytest.mark.parametrize("make", [*LEARNING, frozen_partner_mean])
def test_known_misfits_are_zero(make: type) -> None:
    estimator = make(by_hand())
    estimator.learn(told([], [Misfit(0, 0, 2), Misfit(0, 2, -1)]))
    found = estimator.estimates()
    assert found.beside_per_s[0, 0, 2] == found.beside_per_s[0, 2, 0] == 0.0
    assert found.fits[0, 0, 2] == found.fits[0, 2, 0] == found.fits[0, 1, 2] == 0.0
    assert found.alone_per_s[0, 2] == 0.0


@pytest.mark.parametrize("make", LEARNING)
def test_later_measurements_do_not_change_earlier_estimates(make: type) -> None:
    """Estimates of step k are those of an estimator that never sees what follows."""
    facts, tables = synthetic_facts(), synthetic()
    steps = [some_runs(tables, 0, [8, 9]), some_runs(tables, 20, [10], 1)]
    whole = make(facts)
    first = whole.estimates()
    whole.learn(steps[0])
    middle = whole.estimates()
    kept = Estimates(*(getattr(middle, f.name).copy() for f in fields(Estimates)))
    whole.learn(steps[1])
    last = whole.estimates()
    part = make(facts)
    assert same(part.estimates(), first)
    part.learn(steps[0])
    assert same(part.estimates(), middle)
    assert same(middle, kept)
    assert not same(last, middle)


def test_frozen_estimates_do_not_learn() -> None:
    facts, tables = synthetic_facts(), synthetic()
    estimator = frozen_partner_mean(facts)
    first = estimator.estimates()
    estimator.learn(some_runs(tables, 0, [8, 9]))
    assert same(estimator.estimates(), first)


@pytest.mark.parametrize("make", LEARNING)
def test_true_tables_of_new_types_change_nothing(make: type) -> None:
    """Public facts of two worlds that differ in what is not public are the same to an estimator."""
    tables, new = synthetic(), [0, 1, 2, 3, 4, 5, 20]
    known = np.ones(tables.alone_per_s.shape, dtype=np.bool_)
    known[:, new] = False
    other_alone, other_beside = tables.alone_per_s.copy(), tables.beside_per_s.copy()
    other_alone[:, new] *= 3.0
    other_beside[:, new] *= 0.5
    worlds = [
        facts_of(tables.gpu_names, tables.job_types, alone, beside, known)
        for alone, beside in (
            (tables.alone_per_s, tables.beside_per_s),
            (other_alone, other_beside),
        )
    ]
    assert same(make(worlds[0]).estimates(), make(worlds[1]).estimates())


@pytest.mark.parametrize("make", LEARNING)
def test_the_order_of_gpu_types_and_job_types_does_not_matter(make: type) -> None:
    tables = synthetic()
    known = np.ones(tables.alone_per_s.shape, dtype=np.bool_)
    known[:, [0, 1, 2, 3, 4, 5, 20]] = False
    rng = np.random.default_rng(5)
    gpus, jobs = rng.permutation(2), rng.permutation(24)
    moved = facts_of(
        [tables.gpu_names[g] for g in gpus],
        [tables.job_types[t] for t in jobs],
        tables.alone_per_s[np.ix_(gpus, jobs)],
        tables.beside_per_s[np.ix_(gpus, jobs, jobs)],
        known[np.ix_(gpus, jobs)],
    )
    one, other = make(synthetic_facts()), make(moved)
    one.learn(some_runs(tables, 0, [8, 9]))
    g, place = int(np.argsort(gpus)[0]), np.argsort(jobs)
    told_other = [
        Measurement(
            g,
            0,
            int(place[m.job_type]),
            -1 if m.partner_type < 0 else int(place[m.partner_type]),
            m.per_s,
        )
        for m in some_runs(tables, 0, [8, 9]).measurements
    ]
    other.learn(told(told_other))
    here, there = one.estimates(), other.estimates()
    assert there.alone_per_s == pytest.approx(here.alone_per_s[np.ix_(gpus, jobs)], rel=1e-6)
    turned = here.beside_per_s[np.ix_(gpus, jobs, jobs)]
    assert there.beside_per_s == pytest.approx(turned, rel=1e-4)
    assert there.fits == pytest.approx(here.fits[np.ix_(gpus, jobs, jobs)], abs=1e-6)


def test_a_profile_run_improves_other_gpu_types() -> None:
    """Types of one family differ in scale: once one GPU type is measured, so is the scale."""
    tables, facts = synthetic(), synthetic_facts()
    for make in LEARNING:
        estimator = make(facts)
        before = abs(np.log(estimator.estimates().alone_per_s[1, 0] / tables.alone_per_s[1, 0]))
        estimator.learn(some_runs(tables, 0, [], 0))
        after = abs(np.log(estimator.estimates().alone_per_s[1, 0] / tables.alone_per_s[1, 0]))
        assert after < before / 2


def test_estimators_have_names() -> None:
    found = estimator_named("partner_mean", by_hand()).estimates()
    assert same(found, partner_mean(by_hand()).estimates())


def test_nothing_known_still_gives_estimates() -> None:
    facts = by_hand()
    blank = facts_of(
        ["one"], facts.job_types, np.ones((1, 3)), np.ones((1, 3, 3)), np.zeros((1, 3), np.bool_)
    )
    for make in LEARNING:
        found = make(blank).estimates()
        assert np.isfinite(found.beside_per_s).all()
        assert (found.alone_log_sd > 0).all()


def test_relatives_tell_of_each_other_and_of_nobody_else() -> None:
    """Types 0 to 5 are of one new family, and 20 is of another: what is measured of 0 concerns 1,
    and its own cells are their means as ever."""
    tables, facts = synthetic(), synthetic_facts()
    model = MatrixCompletion.plain(KnownRows.of(facts))
    runs = some_runs(tables, 0, [8, 9, 10])
    alone, told_by = LookUp(facts, model), LookUp(facts, model, relatives=True)
    first = told_by.estimates()
    assert same(first, alone.estimates())
    for each in (alone, told_by):
        each.learn(runs)
    one, other = alone.estimates(), told_by.estimates()
    assert np.array_equal(one.alone_per_s[:, 20], other.alone_per_s[:, 20])
    assert np.array_equal(one.beside_per_s[:, 0, 6:20], other.beside_per_s[:, 0, 6:20])
    truth = tables.alone_per_s[1, 1]
    error = [abs(np.log(each.alone_per_s[1, 1] / truth)) for each in (one, other)]
    assert error[1] < error[0]
    assert other.alone_log_sd[1, 1] < one.alone_log_sd[1, 1]
    # A type with measurements of its own has these, whatever relatives say.
    told_by.learn(some_runs(tables, 1, []))
    assert told_by.estimates().alone_per_s[0, 1] == pytest.approx(tables.alone_per_s[0, 1])
