"""What runs draw of GPUs, against a made-up machine: 250 W under load at the highest clock, 40 W
idle.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from optbench.hardware.device_watch import _Watched
from optbench.hardware.gpus.nvml_session import GpuDevice, GpuReading
from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

BUSY_W, IDLE_W, PATIENCE_S = 250.0, 40.0, 60.0
WATCH = """
import json, pathlib, time
from dataclasses import asdict
from optbench.hardware.device_watch import DeviceWatch

watch, out = DeviceWatch(0.05), {}


def begin(run, given):
    watch.begin(run, given)
    out[run] = {"began_s": time.monotonic()}


def end(run):
    found, ended_s = out[run], time.monotonic()
    out[run] = asdict(watch.end(run, found["began_s"], ended_s))
    out[run]["seconds"] = ended_s - found["began_s"]


"""


@contextmanager
def loaded(machine: GpuMachine, device: int = 0) -> Iterator[None]:
    load = machine.load([device], seconds=60)
    try:
        yield
    finally:
        load.kill()
        load.communicate()


def watched(machine: GpuMachine, *lines: str, **variables: str) -> dict[str, dict[str, Any]]:
    code = "\n".join([WATCH, *lines, "watch.close()", "print(json.dumps(out))"])
    done = machine.python(code, **variables)
    assert done.code == 0, done.err
    found: dict[str, dict[str, Any]] = json.loads(done.out)
    return found


def test_a_run_is_charged_the_devices_that_it_was_given(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=3)
    name = machine.uuid(1)
    with loaded(machine):
        found = watched(
            machine,
            f"begin('both', ('0', {name!r}))",
            "begin('none', ())",
            "begin('unknown', ('7',))",
            "time.sleep(0.3)",
            "for run in list(out): end(run)",
        )
    both = found["both"]
    drawn = both["by_device_j"]
    assert drawn[machine.uuid(0)] == pytest.approx(BUSY_W * both["seconds"], rel=1e-3)
    assert drawn[machine.uuid(1)] == pytest.approx(IDLE_W * both["seconds"], rel=1e-3)
    assert (both["source"], both["shared"], both["error_j"]) == ("counter", False, 0.0)
    assert found["none"]["by_device_j"] == {} == found["unknown"]["by_device_j"]
    assert found["none"]["notes"] == []
    assert "7 is not measured (unknown GPU '7'" in found["unknown"]["notes"][0]


def test_a_device_that_two_runs_held_is_divided_while_both_did(gpu_machine: GpuMachine) -> None:
    with loaded(gpu_machine):
        found = watched(
            gpu_machine,
            "begin('long', ('0',))",
            "time.sleep(0.2)",
            "begin('short', ('0',))",
            "time.sleep(0.2)",
            "end('short')",
            "time.sleep(0.2)",
            "end('long')",
        )
    long, short = found["long"], found["short"]
    uuid = gpu_machine.uuid()
    assert short["by_device_j"][uuid] == pytest.approx(BUSY_W / 2 * short["seconds"], rel=0.02)
    whole_j = long["by_device_j"][uuid] + short["by_device_j"][uuid]
    assert whole_j == pytest.approx(BUSY_W * long["seconds"], rel=0.02)
    assert long["shared"] and short["shared"]


def test_without_names_busy_devices_count_and_are_shared(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    lines = ["begin('any', None)", "time.sleep(0.2)", "end('any')"]
    assert watched(machine, *lines)["any"]["by_device_j"] == {}
    with loaded(machine):
        found = watched(machine, *lines)["any"]
    assert list(found["by_device_j"]) == [machine.uuid(0)] and found["shared"]


def test_without_a_counter_the_integral_has_a_stated_error(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(has_counter=0)
    steps = ["begin('one', ('0',))", "time.sleep(0.4)", "end('one')"]
    with loaded(machine):
        steady = watched(machine, *steps)["one"]
    assert steady["source"] == "power" and steady["error_j"] == 0.0
    drawn_j = steady["by_device_j"][machine.uuid()]
    assert drawn_j == pytest.approx(BUSY_W * steady["seconds"], rel=1e-3)
    # An old driver's power is a mean over a second: after the load's end it still falls.
    old = gpu_machines(has_counter=0, instant_power=0)
    with loaded(old):
        assert old.python("import time; time.sleep(0.5)").code == 0
    falling = watched(old, *steps)["one"]
    drawn_j = falling["by_device_j"][old.uuid()]
    assert falling["error_j"] > 0
    assert abs(drawn_j - IDLE_W * falling["seconds"]) <= falling["error_j"]


def test_a_lost_device_and_a_partitioned_one_say_so(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    machine.set(1, mig=1)
    thread = threading.Thread(target=lose_once_begun, args=(machine,))
    thread.start()
    found = watched(
        machine,
        "begin('one', ('0', '1'))",
        "time.sleep(0.1)",
        "pathlib.Path('begun').touch()",
        "while not pathlib.Path('lost').exists(): time.sleep(0.01)",
        "time.sleep(0.2)",
        "end('one')",
    )["one"]
    thread.join()
    notes = " ".join(found["notes"])
    assert f"GPU {machine.uuid(0)}: a lower bound, the GPU is lost" in notes
    assert f"GPU {machine.uuid(1)}: MIG is enabled" in notes and found["shared"]
    assert 0 < found["by_device_j"][machine.uuid(0)] < IDLE_W * found["seconds"]


def lose_once_begun(machine: GpuMachine) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not (machine.folder / "begun").exists() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    machine.lose(0)
    (machine.folder / "lost").touch()


def test_without_a_driver_nothing_is_counted_and_said_where_devices_were_given(
    gpu_machine: GpuMachine,
) -> None:
    lines = ["begin('given', ('0',))", "begin('any', None)", "end('given')", "end('any')"]
    found = watched(gpu_machine, *lines, LD_LIBRARY_PATH="")
    assert found["given"]["by_device_j"] == {} == found["any"]["by_device_j"]
    assert "not measured, libnvidia-ml.so.1" in found["given"]["notes"][0]
    assert found["any"]["notes"] == []


def test_a_long_run_keeps_its_beginning() -> None:
    """3,000 readings at 100 W, a second apart; another run holds the device from 1,000 s to
    1,500 s, so that 250 s × 100 W are not the first's.
    """
    watched = _Watched(device_of_100_w(), reading_at(0.0))
    for second in range(1, 3001):
        watched.add(reading_at(float(second)), 2 if 1000 < second <= 1500 else 1, since_s=0.0)
    assert len(watched.steps) < 1300
    steps = watched.steps_between(0.5, 2999.5)
    whole_j = sum(step.energy_j * step.share_of(0.5, 2999.5) for step in steps)
    assert whole_j == pytest.approx(100.0 * (2999.0 - 250.0))
    shared = watched.steps_between(1000.0, 1500.0)
    assert sum(s.energy_j * s.share_of(1000.0, 1500.0) for s in shared) == pytest.approx(25_000.0)
    for second in range(3001, 5000):
        watched.add(reading_at(float(second)), 1, since_s=4900.0)
    assert watched.steps[0].began_s > 3000.0


def test_a_holder_that_had_ended_leaves_its_part_to_the_others() -> None:
    """Two runs held a device of 100 W for 10 s; of the second it turns out at the end that its
    process was there from 2.5 s to 6.5 s only.
    """
    watched = _Watched(device_of_100_w(), reading_at(0.0))
    for second in range(1, 11):
        watched.add(reading_at(float(second)), 2, since_s=0.0)
    steps = watched.steps_between(2.5, 6.5)
    assert sum(s.energy_j * s.share_of(2.5, 6.5) for s in steps) == pytest.approx(200.0)
    watched.give_back(0.0, 2.5)
    watched.give_back(6.5, math.inf)
    steps = watched.steps_between(0.0, 10.0)
    # 6 s alone at 100 W and half of 4 s.
    assert sum(s.energy_j * s.share_of(0.0, 10.0) for s in steps) == pytest.approx(800.0)
    assert sum(each.energy_j for each in steps) == pytest.approx(1000.0)


def device_of_100_w() -> GpuDevice:
    return GpuDevice(0, "GPU-a", "made up", "1", None, None, (), False, {})


def reading_at(t_s: float) -> GpuReading:
    return GpuReading(t_s, 100.0, 0.0, 100.0 * t_s, None, None, None, 1.0, ())
