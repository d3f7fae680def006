"""What ``gpu apply`` refuses, each with a message that says what to do; no clock is locked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from optbench.hardware.clock_control.state_folder import VARIABLE
from tests.cli.conftest import Outcome
from tests.hardware.clock_control.planned_files import write_plan
from tests.hardware.gpu_machine import GpuMachine, StubLibraries

REFUSED = (
    ("other.json", "no file in the folder of 'other.json' is its instance 'clocked'; give the"),
    ("instance.json other.json", "a schedule of another instance"),
    ("nameless.json", "names no instance (it has no instance_hash)"),
    ("missing.json", "no such file: 'missing.json'; give a schedule"),
    ("a b c", "3 arguments are given; it takes [INSTANCE] SCHEDULE"),
    (
        "unclocked/instance.json unclocked/schedule.json",
        "says no clock: no mode of its tasks has one",
    ),
    ("schedule.json --map cpu=0", "unknown pool in --map 'cpu'; did you mean 'gpu'?"),
    ("schedule.json --map gpu=0", "1 device is given; the schedule runs on 2 at once"),
    ("schedule.json --map gpu=0,GPU-0000000", "unknown GPU 'GPU-0000000'"),
    ("schedule.json --start-at 2020-01-01T00:00", "--start-at '2020-01-01T00:00' was"),
    ("schedule.json --start-at soon", "--start-at 'soon' is no time; write 2027-01-31T22:00"),
    ("schedule.json --events fifo.txt --execute", "'fifo.txt' is no FIFO; make one"),
    ("schedule.json --events nowhere --execute", "'nowhere': there is no such FIFO; make it"),
    ("schedule.json --events fifo.txt --start-at +1s", "leave --start-at out"),
    ("schedule.json --restore-to 900", "--restore-to '900' is no range; write LOW-HIGH"),
    ("schedule.json --restore-to 900-300", "is upside down"),
    ("schedule.json --events ", "--events '.' is no FIFO"),
    ("schedule.json --restore-to 211-213", "holds no clock that GPU 0"),
    ("schedule.json --restore-to 210-9000", "210 to 9,000 MHz is outside of what GPU 0"),
)
# All command lines in one process: a Python for each takes longer than what they do.
RUN_ALL = """
import contextlib, io, json, sys
from optbench.cli.main import main
out = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(['gpu', 'apply', *words])
    out.append([code, said.getvalue()])
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def machine(stub_libraries: StubLibraries, tmp_path_factory: pytest.TempPathFactory) -> GpuMachine:
    """Two devices with a plan for both, and files that are wrong in one way each."""
    made = GpuMachine(stub_libraries, tmp_path_factory.mktemp("refusals"), num_devices=2)
    instance, schedule = write_plan(made.folder, 2, [0.1] * 4)
    right = json.loads(schedule.read_text())
    late = {**right["segments"], "start": [0] * 4}
    write(made.folder / "infeasible.json", {**right, "segments": late})
    write(made.folder / "other.json", {**right, "instance_hash": "0" * 64})
    write(made.folder / "nameless.json", {"format": right["format"], "version": 2})
    (made.folder / "fifo.txt").write_text("")
    unclocked = json.loads(instance.read_text())
    unclocked["modes"]["clock"] = [None] * len(unclocked["modes"]["clock"])
    (made.folder / "unclocked").mkdir()
    write(made.folder / "unclocked" / "instance.json", unclocked)
    del right["instance_hash"]
    write(made.folder / "unclocked" / "schedule.json", right)
    return made


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))


def refused(machine: GpuMachine, *words: str) -> Outcome:
    outcome = machine.run(["gpu", "apply", *words], **{VARIABLE: str(machine.folder / "state")})
    assert outcome.code != 0
    assert machine.calls() == []
    return outcome


def test_bad_input_is_refused_by_name(machine: GpuMachine) -> None:
    lines = json.dumps([words.split(" ") for words, _ in REFUSED])
    code = f"import sys; sys.argv = ['', {lines!r}]\n{RUN_ALL}"
    outcome = machine.python(code, **{VARIABLE: str(machine.folder / "state")})
    found = outcome.json
    for (words, message), (exit_code, said) in zip(REFUSED, found, strict=True):
        assert exit_code == 2, (words, said)
        assert message in said, (words, said)
    assert machine.calls() == []


def test_an_infeasible_schedule_is_refused_with_what_it_breaks(machine: GpuMachine) -> None:
    outcome = refused(machine, "instance.json", "infeasible.json", "--execute")
    assert outcome.code == 4
    assert "not feasible: infeasible.json breaks constraints of clocked" in outcome.out
    found = refused(machine, "instance.json", "infeasible.json", "--json").json
    assert found["feasible"] is False
    assert found["violations"] != []


def test_clocks_that_are_too_far_are_refused(machine: GpuMachine) -> None:
    try:
        for k in range(2):
            with machine.changing() as state:
                # The lowest clock is 1,200 MHz: nothing near half of 1,410 MHz.
                state.devices[k].clocks_mhz[:2] = [1200, 1410]
                state.devices[k].num_clocks = 2
        outcome = refused(machine, "schedule.json", "--execute")
    finally:
        for k in range(2):
            machine._prepare(k, {})
    assert "clock 0.5 of pool 'gpu' is 705 MHz on device 0" in outcome.err
    assert "the nearest it has is 1,200 MHz, +70.2%" in outcome.err


def test_a_device_in_mig_mode_is_refused(machine: GpuMachine) -> None:
    try:
        machine.set(1, mig=1)
        outcome = refused(machine, "schedule.json", "--map", "gpu=0,1", "--execute")
    finally:
        machine.set(1, mig=0)
    assert "is in MIG mode: its parts share one clock" in outcome.err
    assert "`nvidia-smi -i 1 -mig 0` as root" in outcome.err


def test_a_lost_device_is_named_where_it_is_missed(machine: GpuMachine) -> None:
    try:
        machine.lose(0)
        named = refused(machine, "schedule.json", "--map", "gpu=0,1")
        free = refused(machine, "schedule.json")
    finally:
        machine.set(0, lost_from_ns=0)
    assert "unknown GPU '0'" in named.err
    assert "too few devices" in free.err
    for outcome in (named, free):
        assert "the GPU is lost" in outcome.err


def test_without_a_driver_it_says_so(machine: GpuMachine) -> None:
    outcome = machine.run(["gpu", "apply", "schedule.json"], LD_LIBRARY_PATH="")
    assert (outcome.code, "libnvidia-ml.so.1 not found" in outcome.err) == (2, True)


def test_an_old_driver_cannot_lock_clocks(stub_libraries: StubLibraries, tmp_path: Path) -> None:
    machine = GpuMachine(stub_libraries, tmp_path, old_driver=True)
    write_plan(machine.folder, 1, [0.1])
    outcome = refused(machine, "schedule.json", "--execute")
    assert "nvmlDeviceSetGpuLockedClocks: the driver 575.57.08 is too old" in outcome.err
