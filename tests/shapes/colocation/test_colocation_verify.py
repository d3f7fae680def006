"""Metrics derived by hand, and every rule broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.shapes.colocation.allocation_rules import RULES
from optbench.shapes.colocation.allocations import Allocation
from optbench.shapes.colocation.colocation_data import Colocation, Outage
from optbench.shapes.colocation.colocation_shape import ColocationShape
from tests.shapes.colocation.two_gpus import (
    ALONE,
    FAST,
    GANG,
    HEAVY,
    LIGHT,
    SLOW,
    cluster,
    rows,
)

SHAPE = ColocationShape()
# Sleep of all GPUs for 8 epochs of 100 s: (10 + 2 × 5) × 800.
ASLEEP_J = 16_000.0
# Watts beyond sleep, half used: 30 + 0.5 × 100 − 10, and 20 + 0.5 × 40 − 5.
FAST_W, SLOW_W = 70.0, 35.0


def found(data: Colocation, decision: Allocation) -> Any:
    return SHAPE.instance("test", data).shape.verdict_of(SHAPE.instance("test", data), decision)


def metrics(data: Colocation, decision: Allocation) -> dict[str, float]:
    verdict = found(data, decision)
    assert verdict.feasible, verdict.violations
    return dict(verdict.metrics)


def broken(data: Colocation, decision: Allocation) -> set[str]:
    return {each.constraint for each in found(data, decision).violations}


def test_a_training_job_stops_when_its_work_is_done() -> None:
    # 250 units at 2 per second: 100 s in the first epoch, 25 s in the second.
    got = metrics(cluster([(HEAVY, 0, 1, 250, 0)]), rows((0, FAST, 0), (1, FAST, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + FAST_W * 125)
    assert got["shortfall_s"] == 0.0
    assert got["slo_violation"] == 0.0
    assert got["busy_gpu_s"] == pytest.approx(125)
    assert got["drained_s"] == 200.0


def test_waiting_is_shortfall() -> None:
    # It arrives at 30 s, may begin at 100 s, and waits one epoch more; then it runs for 125 s.
    got = metrics(cluster([(HEAVY, 30, 1, 250, 0)]), rows((2, FAST, 0), (3, FAST, 0)))
    assert got["shortfall_s"] == pytest.approx(70 + 100)
    assert got["slo_violation"] == pytest.approx(170 / (170 + 125))


def test_a_rate_below_the_requirement_is_a_part_of_shortfall() -> None:
    # The slow GPU gives 1 of the 1.6 that are required, for 50 s.
    got = metrics(cluster([(HEAVY, 0, 1.6, 50, 0)]), rows((0, SLOW, 0)))
    assert got["shortfall_s"] == pytest.approx(50 * (1 - 1 / 1.6))
    assert got["slo_violation"] == 1.0


def test_two_jobs_share_a_gpu() -> None:
    # Rates 1 and 3 of 2 and 4 alone: used 0.5 × (0.5 + 0.75) = 0.625, so 92.5 − 10 W. Light ends
    # after 30 / 3 = 10 s; the GPU is busy until heavy ends, after 80 s.
    data = cluster([(HEAVY, 0, 1, 80, 0), (LIGHT, 0, 1, 30, 0)])
    got = metrics(data, rows((0, FAST, 0, 1)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + 82.5 * 80)
    assert got["shared"] == 1.0
    assert got["slo_violation"] == 0.0


def test_a_service_uses_its_share_and_leaves() -> None:
    # 1 of 4 per second: used 0.5 × 0.25 = 0.125, so 42.5 − 10 W, for 150 s.
    got = metrics(cluster([(LIGHT, 0, 1, 0, 150)]), rows((0, FAST, 0), (1, FAST, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + 32.5 * 150)
    assert got["shortfall_s"] == 0.0


def test_a_service_leaves_unserved() -> None:
    got = metrics(cluster([(LIGHT, 0, 1, 0, 150)]), rows())
    assert got["shortfall_s"] == pytest.approx(150)
    assert got["energy_j"] == ASLEEP_J


def test_a_gang_takes_all_its_gpus() -> None:
    # 250 units at 2.5 per second on two GPUs.
    got = metrics(cluster([(GANG, 0, 1, 250, 0)]), rows((0, SLOW, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + 2 * SLOW_W * 100)
    assert got["busy_gpu_s"] == pytest.approx(200)


def test_replicas_add_their_rates() -> None:
    # Two slow GPUs: 2 per second together, so 100 units take 50 s on both.
    got = metrics(cluster([(HEAVY, 0, 1.5, 100, 0, 2)]), rows((0, SLOW, 0), (0, SLOW, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + 2 * SLOW_W * 50)
    assert got["shortfall_s"] == 0.0


def test_a_profile_run_is_short() -> None:
    # 25 s at 2 per second in the first epoch; 50 units remain for 25 s of the second one.
    got = metrics(cluster([(HEAVY, 0, 1, 100, 0)]), rows((0, FAST, 0, -1, True), (1, FAST, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + FAST_W * 50)
    assert got["shortfall_s"] == pytest.approx(75)
    assert got["profile_runs"] == 1


def test_a_move_loses_time() -> None:
    # 200 units: 100 on the slow GPU, then 10 s lost and 50 s on the fast one.
    data = cluster([(HEAVY, 0, 1, 200, 0)], migration_s=10.0)
    got = metrics(data, rows((0, SLOW, 0), (1, FAST, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + SLOW_W * 100 + FAST_W * 60)
    assert got["shortfall_s"] == pytest.approx(10)
    assert got["moves"] == 1


def unknown(jobs: list[tuple[Any, ...]]) -> Colocation:
    return cluster(jobs, known=np.zeros((2, 4), dtype=bool))


def test_of_a_misfit_the_later_job_fails() -> None:
    # Alone needs 1 per second and 50 units; heavy arrived later, and makes 100 units afterwards.
    data = unknown([(ALONE, 0, 1, 50, 0), (HEAVY, 0, 1, 100, 0)])
    got = metrics(data, rows((0, FAST, 0, 1), (1, FAST, 1)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + FAST_W * 50 + 30 * 20 + FAST_W * 50)
    assert got["shortfall_s"] == pytest.approx(100)
    assert got["misfits"] == 1


def test_a_job_that_does_not_run_alone_fails() -> None:
    data = unknown([(ALONE, 0, 1, 50, 0)])
    got = metrics(data, rows((0, SLOW, 0), (1, FAST, 0)))
    assert got["energy_j"] == pytest.approx(ASLEEP_J + 20 * 20 + FAST_W * 50)
    assert got["misfits"] == 1


BREAKS: dict[str, tuple[Any, ...]] = {
    "form": ([(HEAVY, 0, 1, 50, 0)], rows((0, FAST, 1))),
    "gpu_count": ([(HEAVY, 0, 1, 50, 0), (LIGHT, 0, 1, 50, 0)], rows((0, FAST, 0), (0, FAST, 1))),
    "distinct": ([(LIGHT, 0, 1, 50, 0, 2)], rows((0, FAST, 0, 0))),
    "gang_alone": ([(GANG, 0, 1, 50, 0), (HEAVY, 0, 1, 50, 0)], rows((0, SLOW, 0, 1))),
    "profile_alone": (
        [(HEAVY, 0, 1, 50, 0), (LIGHT, 0, 1, 50, 0)],
        rows((0, FAST, 0, 1, True), (1, FAST, 0, 1)),
    ),
    "replicas": ([(HEAVY, 0, 1, 50, 0)], rows((0, FAST, 0), (0, SLOW, 0))),
    "arrival": ([(HEAVY, 30, 1, 50, 0)], rows((0, FAST, 0))),
    "presence": ([(HEAVY, 0, 1, 50, 0)], rows((0, FAST, 0), (1, FAST, 0))),
    "known_misfit": ([(HEAVY, 0, 1, 50, 0), (ALONE, 0, 1, 50, 0)], rows((0, FAST, 0, 1))),
    "epochs": ([(HEAVY, 0, 1, 50, 0)], rows((0, FAST, 0), (8, FAST, 0))),
    "completed": ([(HEAVY, 0, 1, 500, 0)], rows((0, FAST, 0))),
}


@pytest.mark.parametrize("rule", BREAKS)
def test_a_broken_rule_is_named(rule: str) -> None:
    jobs, decision = BREAKS[rule]
    assert rule in broken(cluster(jobs), decision)


def test_every_rule_is_broken_once() -> None:
    assert set(BREAKS) == set(RULES)


def test_a_misfit_that_happened_is_known() -> None:
    data = unknown([(ALONE, 0, 1, 50, 0), (HEAVY, 0, 1, 100, 0)])
    twice = rows((0, FAST, 0, 1), (1, SLOW, 1))
    assert found(data, twice).feasible
    again = unknown([(ALONE, 0, 0.5, 150, 0), (HEAVY, 0, 1, 100, 0)])
    assert broken(again, rows((0, FAST, 0, 1), (1, FAST, 0, 1), (2, FAST, 1))) == {"known_misfit"}


def test_rows_of_another_type_are_no_rows() -> None:
    data = cluster([(HEAVY, 0, 1, 50, 0)])
    quarter = replace(rows((0, FAST, 0)), epoch=np.array([0.25]))
    assert broken(data, quarter) == {"form"}


def test_a_profile_run_is_the_only_row() -> None:
    data = cluster([(HEAVY, 0, 1.5, 100, 0, 2)])
    both = rows((0, SLOW, 0), (0, SLOW, 0, -1, True), (1, FAST, 0))
    assert "profile_alone" in broken(data, both)


def test_a_service_that_has_left_is_not_placed() -> None:
    data = cluster([(LIGHT, 0, 1, 0, 150)])
    assert broken(data, rows((0, FAST, 0), (1, FAST, 0), (2, FAST, 0))) == {"presence"}


def test_gpus_that_are_down_are_not_there() -> None:
    data = cluster([(HEAVY, 0, 1, 100, 0)])
    down = replace(data, outages=(Outage(FAST, 1, 0, 2),))
    assert broken(down, rows((1, FAST, 0))) == {"gpu_count"}
    assert not broken(down, rows((2, FAST, 0)))


def test_levels_hold_the_shortfall() -> None:
    instance = SHAPE.instance("test", cluster([(HEAVY, 30, 1, 250, 0)]))
    decision = rows((2, FAST, 0), (3, FAST, 0))  # a shortfall of 170 s, see above
    whole = SHAPE.verdict_of(instance, decision)
    assert whole.objectives == pytest.approx((170, ASLEEP_J + FAST_W * 125))
    energy = SHAPE.at_level(instance, 1, (170.0,))
    assert SHAPE.verdict_of(energy, decision).objectives == whole.objectives[1:]
    strict = SHAPE.at_level(instance, 1, (169.0,))
    verdict = SHAPE.verdict_of(strict, decision)
    assert [each.constraint for each in verdict.violations] == ["held:shortfall_s"]
    assert len({instance.hash, energy.hash, strict.hash}) == 3


def test_files_keep_everything() -> None:
    instance = SHAPE.instance("test", cluster([(HEAVY, 0, 1, 50, 0), (LIGHT, 0, 1, 50, 0)]))
    again = SHAPE.read(SHAPE.write(instance))
    assert again.hash == instance.hash
    decision = rows((0, FAST, 0, 1))
    read = SHAPE.read_decision(again, SHAPE.write_decision(instance, decision))
    assert SHAPE.verdict_of(again, read) == SHAPE.verdict_of(instance, decision)
