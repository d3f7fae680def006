"""A sample of ``benchmarks/cut_validity.py``: no cut excludes a schedule, no solver is misled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.model.time_cuts import time_cuts
from tests.reference.brute_force import _grow, mode_choices
from tests.reference.cut_agreement import CutOutcome, compare_cuts, slack
from tests.reference.two_verifiers import instance_of
from tests.second_verifier.generator import SCALES, random_instance

SEEDS, SOLVED = range(100), range(30)


@pytest.fixture(scope="module")
def outcomes() -> list[CutOutcome]:
    found = [compare_cuts(seed) if seed in SOLVED else compare_cuts(seed, ()) for seed in SEEDS]
    return [outcome for outcome in found if outcome is not None]


def test_cuts_hold_and_solvers_agree_with_brute_force(outcomes: list[CutOutcome]) -> None:
    assert [line for outcome in outcomes for line in outcome.wrong] == []


def test_the_sample_is_not_vacuous(outcomes: list[CutOutcome]) -> None:
    """Some cuts have no slack, some instances are infeasible, and every feature turns up."""
    assert len(outcomes) >= 40
    assert sum(outcome.num_tight for outcome in outcomes) >= 25
    assert sum(outcome.num_rows_checked for outcome in outcomes) >= 10_000
    assert sum(outcome.is_tightened for outcome in outcomes) >= 20
    assert sum(len(outcome.compared) for outcome in outcomes) >= 20
    assert {outcome.status for outcome in outcomes} == {"optimum", "infeasible"}
    features = {name for outcome in outcomes for name in outcome.features}
    assert features >= {"releases", "deadlines", "transfers", "power_cap", "multi_resource"}


def test_flows_of_billions_of_ticks_mislead_nobody() -> None:
    """HiGHS called this instance infeasible while its flows were counted in single ticks."""
    outcome = compare_cuts(1577)
    assert outcome is not None and outcome.status == "optimum"
    assert outcome.wrong == [] and "highs:form=disjunctive,first=no" in outcome.compared


def test_a_cut_with_one_tick_less_is_broken() -> None:
    """A cut without slack in some schedule is broken by it when its window waits a tick more."""
    seen = 0
    for seed in range(20):
        data = random_instance(
            seed, SCALES[0], (3, 3), preemptive=False, open=False, outages=False, edges=True
        )
        instance = instance_of(data)
        for cut in time_cuts(instance):
            tighter = replace(cut, wait=cut.wait + 1)
            least = [
                np.min([slack(instance, c, mode, starts) for c in (cut, tighter)], axis=1)
                for mode in mode_choices(instance)
                if len(starts := _grow(instance, mode))
            ]
            if least and min(row[0] for row in least) == 0:
                seen += 1
                assert min(row[1] for row in least) < 0
    assert seen >= 3
