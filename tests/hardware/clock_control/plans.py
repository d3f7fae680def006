"""Made-up plans and devices for tests without a driver."""

from __future__ import annotations

from dataclasses import replace

from optbench.hardware.clock_control.planned_clocks import ClockPlan, PlannedSegment
from optbench.hardware.gpus.nvml_session import GpuDevice

A100 = GpuDevice(0, "GPU-a0", "A100", "575", 40.0, 400.0, tuple(range(210, 1411, 15)), False, {})


def device(index: int, name: str = "A100", mig: bool = False) -> GpuDevice:
    return replace(A100, index=index, uuid=f"GPU-a{index}", name=name, mig=mig)


def segment(
    task: str, start_s: float, end_s: float, places: tuple[int, ...], clock: float, pool: str = "p"
) -> PlannedSegment:
    return PlannedSegment(task, start_s, end_s, pool, places, clock)


def plan_of(*segments: PlannedSegment) -> ClockPlan:
    """A plan of pools with four devices each."""
    pools = {each.pool for each in segments if each.pool is not None}
    return ClockPlan("a plan", segments, dict.fromkeys(sorted(pools), 4))
