"""The reference and the verifier, written apart, say the same of decisions good and bad."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.model.instance import Instance, Ints
from optbench.model.objective import METRICS
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.reference.brute_force import brute_force, evaluate, mode_choices
from tests.reference.plain_facts import end_of_time
from tests.reference.random_instances import tiny_instance


@pytest.mark.parametrize("seed", range(60))
def test_verifier_and_reference_agree_on_random_decisions(seed: int) -> None:
    instance = tiny_instance(seed)
    rng = np.random.default_rng(seed)
    choices = list(mode_choices(instance))
    for _ in range(12):
        mode = choices[rng.integers(len(choices))]
        _compare(
            instance, mode, rng.integers(0, end_of_time(instance) + 1, (4, instance.num_tasks))
        )


@pytest.mark.parametrize("seed", range(60))
def test_they_agree_at_the_optimum_and_one_tick_beside_it(seed: int) -> None:
    instance = tiny_instance(seed)
    best = brute_force(instance)
    if best is not None:
        verdict = verify(instance, Schedule.of(instance, best.mode, best.start))
        assert verdict.feasible, verdict.violations
        assert verdict.objectives == pytest.approx(best.objectives, rel=1e-9)
        step = np.eye(instance.num_tasks, dtype=np.int64)
        _compare(
            instance, best.mode, np.maximum(0, np.array(best.start) + np.vstack((step, -step)))
        )


def _compare(instance: Instance, mode: tuple[int, ...], rows: Ints) -> None:
    evaluation = evaluate(instance, mode, rows)
    for row, start in enumerate(rows):
        verdict = verify(instance, Schedule.of(instance, mode, start))
        assert verdict.feasible == evaluation.feasible[row], (mode, start, verdict.violations)
        if any(
            violation.constraint in ("horizon", "capacity", "link")
            for violation in verdict.violations
        ):
            continue  # what such a decision would draw has no meaning
        for name in METRICS:
            value = evaluation.metrics[name][row]
            assert verdict.metrics[name] == pytest.approx(value, rel=1e-9, abs=1e-9), (
                name,
                mode,
                start,
            )


def test_the_same_seed_gives_the_same_instance() -> None:
    assert tiny_instance(7).hash == tiny_instance(7).hash
    assert len({tiny_instance(seed).hash for seed in range(50)}) == 50
