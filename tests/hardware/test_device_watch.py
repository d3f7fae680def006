"""What runs draw of GPUs, against a made-up machine: 250 W under load at the highest clock, 40 W
idle.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

BUSY_W, IDLE_W, PATIENCE_S = 250.0, 40.0, 60.0
WATCH = """
import json, pathlib, time
from dataclasses import asdict
from optbench.hardware.device_watch import DeviceWatch

watch, out = DeviceWatch(0.05), {}


def begin(run, given, *pids):
    watch.begin(run, given, lambda: pids)
    out[run] = {"began_s": time.monotonic()}


def end(run):
    found, ended_s = out[run], time.monotonic()
    out[run] = asdict(watch.end(run, found["began_s"], ended_s))
    out[run]["seconds"] = ended_s - found["began_s"]


"""


@contextmanager
def loaded(machine: GpuMachine, device: int = 0) -> Iterator[int]:
    """Make a device busy by a process; its number."""
    load = machine.load([device], seconds=60)
    try:
        yield load.pid
    finally:
        load.kill()
        load.communicate()


def watched(machine: GpuMachine, *lines: str, **variables: str) -> dict[str, dict[str, Any]]:
    code = "\n".join([WATCH, *lines, "watch.close()", "print(json.dumps(out))"])
    done = machine.python(code, **variables)
    assert done.code == 0, done.err
    found: dict[str, dict[str, Any]] = json.loads(done.out)
    return found


def test_a_run_is_charged_the_devices_on_which_its_processes_are(
    gpu_machines: MachineMaker,
) -> None:
    """Whatever it was given by name: of three devices one has its process, one another's."""
    machine = gpu_machines(num_devices=3)
    with loaded(machine) as pid, loaded(machine, 1) as other:
        found = watched(
            machine,
            f"begin('any', None, {pid})",
            f"begin('given', ('0', '1', '2'), {other})",
            "begin('idle', None, 1)",
            "begin('none', ())",
            "begin('unknown', ('7',))",
            "time.sleep(0.3)",
            "for run in list(out): end(run)",
        )
    for run, device in (("any", 0), ("given", 1)):
        drawn = found[run]["by_device_j"]
        assert list(drawn) == [machine.uuid(device)]
        expected_j = BUSY_W * found[run]["seconds"]
        assert drawn[machine.uuid(device)] == pytest.approx(expected_j, rel=0.02)
        assert (found[run]["source"], found[run]["shared"]) == ("counter", False)
        assert found[run]["complete"] and not found[run]["notes"] and found[run]["error_j"] == 0.0
    for run in ("idle", "none", "unknown"):
        assert found[run]["by_device_j"] == {}
        assert found[run]["complete"] == (run != "unknown")
    assert found["none"]["notes"] == [] == found["idle"]["notes"]
    assert "7 is not measured (unknown GPU '7'" in found["unknown"]["notes"][0]


def test_a_device_is_divided_while_two_runs_are_on_it(gpu_machine: GpuMachine) -> None:
    with loaded(gpu_machine) as one, loaded(gpu_machine) as two:
        found = watched(
            gpu_machine,
            f"begin('long', ('0',), {one})",
            "time.sleep(0.2)",
            f"begin('short', ('0',), {two})",
            "begin('beside', ('0',), 1)",
            "time.sleep(0.2)",
            "end('short')",
            "time.sleep(0.2)",
            "end('long')",
            "end('beside')",
        )
    long, short = found["long"], found["short"]
    uuid = gpu_machine.uuid()
    assert short["by_device_j"][uuid] == pytest.approx(BUSY_W / 2 * short["seconds"], rel=0.02)
    whole_j = long["by_device_j"][uuid] + short["by_device_j"][uuid]
    assert whole_j == pytest.approx(BUSY_W * long["seconds"], rel=0.02)
    assert long["shared"] and short["shared"] and found["beside"]["by_device_j"] == {}
    # Before and after the second run its process was nobody's.
    assert "processes of others were on it" in long["notes"][0]


def test_an_old_driver_lists_processes_by_its_older_function(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2, old_driver=True)
    with loaded(machine) as pid:
        lines = [f"begin('any', None, {pid})", "time.sleep(0.2)", "end('any')"]
        found = watched(machine, *lines)["any"]
    assert list(found["by_device_j"]) == [machine.uuid(0)] and found["source"] == "power"
    assert found["complete"]


@pytest.mark.parametrize("pids", [1, 2])
def test_where_processes_are_hidden_only_names_count(gpu_machine: GpuMachine, pids: int) -> None:
    """As in a container, which sees none, or where asking is not allowed."""
    gpu_machine.set(pids=pids)
    with loaded(gpu_machine) as pid:
        found = watched(
            gpu_machine,
            f"begin('given', ('0',), {pid})",
            f"begin('also', ({gpu_machine.uuid()!r},))",
            f"begin('any', None, {pid})",
            "begin('none', ())",
            "time.sleep(0.3)",
            "for run in list(out): end(run)",
        )
    given, anyone = found["given"], found["any"]
    drawn_j = given["by_device_j"][gpu_machine.uuid()]
    assert drawn_j == pytest.approx(BUSY_W / 2 * given["seconds"], rel=0.03)
    assert given["shared"] and given["complete"]
    assert anyone["by_device_j"] == {} and not anyone["complete"]
    assert "left out, its driver does not say which processes use it" in anyone["notes"][0]
    assert found["none"]["complete"]


def test_an_idle_device_is_nobodys(gpu_machines: MachineMaker) -> None:
    """Neither a partitioned one, which does not say how busy it is, nor one of a container."""
    machine = gpu_machines(num_devices=2)
    machine.set(0, mig=1)
    machine.set(1, pids=1)
    found = watched(machine, "begin('any', None)", "time.sleep(0.2)", "end('any')")["any"]
    assert found["by_device_j"] == {} and found["complete"] and found["notes"] == []


def test_a_device_that_does_not_answer_from_the_beginning_is_said(
    gpu_machines: MachineMaker,
) -> None:
    machine = gpu_machines(num_devices=2)
    machine.lose(1)
    found = watched(
        machine,
        "begin('given', ('1',))",
        "begin('any', None)",
        "for run in list(out): end(run)",
    )
    assert not found["given"]["complete"] and "1 is not measured" in found["given"]["notes"][0]
    # Nobody can use it.
    assert found["any"]["complete"]


def test_a_counter_that_moves_in_steps_may_be_a_step_late(gpu_machine: GpuMachine) -> None:
    """Steps of 0.3 s at 250 W are 75 J."""
    gpu_machine.set(counter_step_ns=300_000_000)
    with loaded(gpu_machine) as pid:
        lines = [f"begin('one', None, {pid})", "time.sleep(0.8)", "end('one')"]
        found = watched(gpu_machine, *lines)["one"]
        lines = [f"begin('short', None, {pid})", "time.sleep(0.1)", "end('short')"]
        short = watched(gpu_machine, *lines)["short"]
    assert found["error_j"] >= 0.99 * 75.0
    for each in (found, short):
        drawn_j = each["by_device_j"][gpu_machine.uuid()]
        assert abs(drawn_j - BUSY_W * each["seconds"]) <= each["error_j"] + 0.1


def test_without_a_counter_the_integral_has_a_stated_error(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(has_counter=0)
    steps = ["time.sleep(0.4)", "end('one')"]
    with loaded(machine) as pid:
        steady = watched(machine, f"begin('one', ('0',), {pid})", *steps)["one"]
    assert steady["source"] == "power" and steady["error_j"] == 0.0
    drawn_j = steady["by_device_j"][machine.uuid()]
    assert drawn_j == pytest.approx(BUSY_W * steady["seconds"], rel=1e-3)
    # An old driver's power is a mean over a second: after the load's end it still falls.
    old = gpu_machines(has_counter=0, instant_power=0)
    with loaded(old):
        assert old.python("import time; time.sleep(0.5)").code == 0
    old.set(pids=2)
    falling = watched(old, "begin('one', ('0',))", *steps)["one"]
    drawn_j = falling["by_device_j"][old.uuid()]
    assert falling["error_j"] > 0
    assert abs(drawn_j - IDLE_W * falling["seconds"]) <= falling["error_j"]


def test_a_lost_device_and_a_partitioned_one_say_so(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2, pids=2)
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
    assert not found["complete"]
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
