"""Clocks come back after ``kill -9``: a few moments here, all of them in the slow test."""

from __future__ import annotations

import pytest

from tests.hardware.clock_control.kill_trials import MOMENTS, VICTIMS, run_trial
from tests.hardware.conftest import MachineMaker

# Of seven kinds of moments, three random ones each.
SEEDS = range(3)


def check(gpu_machines: MachineMaker, victim: str, moment: str, seed: int) -> None:
    trial = run_trial(gpu_machines(num_devices=2), victim, moment, seed)
    assert trial.restored, trial
    assert trial.journals_left == 0, trial


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        ("apply", "before the first lock"),
        ("apply", "in a lock call"),
        ("apply", "restoring"),
        ("watchdog", "between calls"),
        ("both", "in the first lock call"),
        ("both", "in the first reset call"),
        ("both, then restore", "restoring"),
    ],
)
def test_clocks_are_restored_after_kill_9(
    gpu_machines: MachineMaker, victim: str, moment: str
) -> None:
    check(gpu_machines, victim, moment, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_clocks_are_restored_after_kill_9_at_every_kind_of_moment(
    gpu_machines: MachineMaker, victim: str, moment: str
) -> None:
    for seed in SEEDS:
        check(gpu_machines, victim, moment, seed)
