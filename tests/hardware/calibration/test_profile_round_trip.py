"""A calibrated profile gives one energy everywhere: law, instance, verifier, kernel and MILP."""

from __future__ import annotations

import json

import pytest

import optbench as ob
from optbench.hardware.calibration.calibrated_profile import render_profile
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.power.profiles import parse_profile, profile
from optbench.sim.kernel.state import BUSY_J, REST_J, TRANSFER_J
from optbench.views.milp import formulate
from tests.hardware.gpu_machine import GpuMachine
from tests.sim.event_runs import run

UNITS = 1000.0
# Energies are sums of products of floats in unlike order.
SAME = 1e-12


@pytest.fixture(scope="module")
def instance(pair: GpuMachine) -> Instance:
    """Two tasks on two calibrated devices; the second waits for the first."""
    m = ob.Model("calibrated")
    gpus = m.pool("mine", count=2, profile=pair.folder / "my-a100.json")
    first = m.task("first", units=UNITS, kind="training", gpus=(1, 2), pools=[gpus])
    m.task("second", units=2 * UNITS, kind="training", gpus=(1, 2), pools=[gpus], after=first)
    m.minimize(energy_j=1.0)
    return m.build()


def test_a_profile_read_and_written_is_the_same(pair: GpuMachine) -> None:
    text = (pair.folder / "my-a100.json").read_text()
    assert render_profile(json.loads(text)) == text
    assert parse_profile(text, "x") == profile(pair.folder / "my-a100.json")


def test_every_mode_has_the_energy_of_the_law(pair: GpuMachine, instance: Instance) -> None:
    shape = profile(pair.folder / "my-a100.json")
    modes = instance.modes
    expected = sorted(
        shape.energy_per_unit_j("training", n, clock) for n in (1, 2) for clock in shape.clocks
    )
    assert sorted(set(modes.energy_per_unit_j.tolist())) == pytest.approx(expected, rel=SAME)


@pytest.mark.parametrize("seed", range(3))
def test_a_schedule_has_one_energy(pair: GpuMachine, instance: Instance, seed: int) -> None:
    """Random modes and starts in the kernel; the devices that rest draw idle_w each."""
    state, schedule = run(instance, seed)
    assert schedule is not None
    verdict = verify(instance, schedule)
    assert verdict.feasible, verdict.violations
    energy_j = verdict.metrics["energy_j"]
    kernel_j = state.total[BUSY_J] + state.total[TRANSFER_J] + state.total[REST_J]
    assert kernel_j == pytest.approx(energy_j, rel=SAME)
    assert by_law(pair, instance, schedule) == pytest.approx(energy_j, rel=SAME)
    form, _ = formulate(instance, "disjunctive")
    point = form.point_of(schedule)
    assert point is not None and form.arrays.worst_violation(point)[0] <= 1e-6
    assert form.arrays.objective(point) == pytest.approx(energy_j, rel=1e-9)


def by_law(pair: GpuMachine, instance: Instance, schedule: Schedule) -> float:
    """Energy from the profile file alone: busy as the law says, else idle until the end."""
    shape = profile(pair.folder / "my-a100.json")
    modes, tick_s = instance.modes, instance.tick_s
    end_s = float(schedule.end.max()) * tick_s
    total_j, resting_s = 0.0, 2 * end_s
    for task, mode, start, end in zip(
        schedule.task, schedule.mode, schedule.start, schedule.end, strict=True
    ):
        count = int(modes.req_count[modes.req_ptr[mode]])
        units, clock = float(instance.tasks.units[task]), float(modes.clock[mode])
        total_j += units * shape.energy_per_unit_j("training", count, clock)
        resting_s -= count * float(end - start) * tick_s
    return total_j + shape.idle_w * resting_s
