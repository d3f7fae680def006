"""``optbench gpu calibrate`` on made-up GPUs: the laws are found, and the file says how."""

from __future__ import annotations

import json
import platform

import pytest

from optbench.power.profiles import profile
from tests.hardware.calibration.gpu_calibrations import (
    PROFILE,
    calibrated,
    nothing_written,
    profile_of,
    state,
    workload,
)
from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

# The coefficients of the made-up device.
LAW = {
    "alpha_p": 150.0,
    "beta_p": 50.0,
    "gamma_p": 50.0,
    "alpha_t": 0.002,
    "beta_t": 0.008,
    "gamma_t": 0.0005,
}


def test_the_coefficients_are_found(pair: GpuMachine) -> None:
    """Power by the counter and exact times: what is left is the counter's millijoules and the
    edges of its changes."""
    (law,) = profile_of(pair)["laws"].values()
    assert law == pytest.approx(LAW, rel=0.01)


def test_the_profile_says_what_the_device_is(pair: GpuMachine) -> None:
    found = profile_of(pair)
    assert found["clocks"] == pytest.approx([360 / 1410, 720 / 1410, 1065 / 1410, 1], abs=1e-6)
    assert found["idle_w"] == pytest.approx(40.0, rel=0.01)
    assert (found["tdp_w"], found["memory_gb"], found["sleep_w"]) == (400.0, 40.0, 15.0)
    assert set(found["sources"]) == set(found) - {"name", "sources", "measurement"}
    assert found["sources"]["sleep_w"] == "given by the user"


def test_the_profile_says_how_it_was_measured(pair: GpuMachine) -> None:
    record = profile_of(pair)["measurement"]["training"]
    assert record["host"] == platform.node() and record["driver"] == "NVIDIA 575.57.08"
    assert [each["uuid"] for each in record["devices"]] == [pair.uuid(0), pair.uuid(1)]
    assert (record["top_clock_mhz"], record["power_source"]) == (1410, ["counter"])
    assert (record["counts"], record["power_window_s"]) == ([1, 2], 0.0)
    assert record["workload"] == workload(pair)
    assert len(record["runs"]) == 8 and len(record["runs"][0]) == len(record["columns"])
    for fit in (record["power"], record["time"]):
        for name, (low, high) in fit["intervals"].items():
            assert low <= LAW[name] * 1.01 and high >= LAW[name] * 0.99


def test_a_pool_takes_the_profile(pair: GpuMachine) -> None:
    """Joules per unit: P(1) T(1, 1) = 250 · 0.01 = 2.5 and 2 P(1) T(2, 1) = 500 · 0.0055 = 2.75."""
    shape = profile(pair.folder / "my-a100.json")
    assert shape.energy_per_unit_j("training", 1, 1.0) == pytest.approx(2.5, rel=0.005)
    assert shape.energy_per_unit_j("training", 2, 1.0) == pytest.approx(2.75, rel=0.005)
    assert shape.measurement is not None and set(shape.measurement) == {"training"}


def test_a_page_with_residuals_stands_beside_it(pair: GpuMachine) -> None:
    text = (pair.folder / "my-a100.html").read_text()
    assert text.count("<svg") >= 4 and "Residuals" in text and "http://" not in text
    assert pair.uuid(1) in text and "alpha_p" in text


def test_the_clocks_are_reset(pair: GpuMachine) -> None:
    assert [pair.locked(k) for k in (0, 1)] == [None, None]
    # Eight runs: 4 clocks on one device, 4 on two, and before them a try of both.
    locks = [(each.device, each.high_mhz) for each in pair.calls() if each.kind == "lock"][:14]
    assert locks[:2] == [(0, 1410), (1, 1410)]
    expected = [(d, mhz) for mhz in (360, 720, 1065, 1410) for d in (0, 0, 1)]
    assert sorted(locks[2:]) == sorted(expected)
    assert not list((pair.folder / "state").glob("*.journal"))


def test_json_has_the_result(pair: GpuMachine) -> None:
    said = json.loads((pair.folder / "said.json").read_text())
    assert said["written"] == ["my-a100.json", "my-a100.html"]
    assert said["profile"] == profile_of(pair)
    assert said["runs"] == 8 and said["left_out"] == []
    assert said["coefficients"]["gamma_p"]["value"] == pytest.approx(50, rel=0.01)


def test_another_kind_of_work_is_added(pair: GpuMachine) -> None:
    """Half the size at a half size of 500: u = 1/2, and T doubles; the dynamic power halves."""
    copy = ("-o", "both.json", "--merge")
    (pair.folder / "both.json").write_text((pair.folder / PROFILE).read_text())
    pair.set(0, half_size=500.0)
    done = calibrated(pair, *copy, "--kind", "inference", "--size", "500")
    pair.set(0, half_size=0.0)
    assert done.code == 0, done.err
    found = profile_of(pair, "both.json")
    assert set(found["laws"]) == set(found["measurement"]) == {"inference", "training"}
    expected = {"alpha_t": 0.004, "beta_t": 0.016, "alpha_p": 75.0, "gamma_p": 50.0}
    law = found["laws"]["inference"]
    assert {name: law[name] for name in expected} == pytest.approx(expected, rel=0.02)
    assert law["gamma_t"] == 0.0
    assert "gamma_t not measured" in found["sources"]["laws"]
    assert profile(pair.folder / "both.json").kinds == ("inference", "training")
    done = calibrated(pair, *copy, "--clocks", "375,720,1065,1410")
    assert done.code == 2 and "clocks is" in done.err and "same clocks" in done.err


@pytest.mark.slow
def test_readings_that_average_wait_for_their_window(gpu_machines: MachineMaker) -> None:
    """Without a counter and with a window of 1 s: no reading of the first second counts."""
    machine = gpu_machines(has_counter=0, instant_power=0)
    done = calibrated(machine, "--rounds", "1")
    assert done.code == 0, done.err
    found = profile_of(machine)
    assert found["laws"]["training"] == pytest.approx({**LAW, "gamma_t": 0.0}, rel=0.01)
    record = found["measurement"]["training"]
    assert (record["power_window_s"], record["power_source"]) == (1.0, ["readings"])


def test_a_dry_run_sets_and_starts_nothing(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=3)
    done = calibrated(machine, "--device", "0,1,2", "--rounds", "2..5", "--dry-run", "--json")
    assert done.code == 0 and nothing_written(machine) and machine.calls() == []
    plan = done.json
    assert (plan["clocks_mhz"], plan["counts"]) == ([360, 720, 1065, 1410], [1, 2, 3])
    # 12 runs in a round of 0.05 + 1.4 · 0.25 s and half a second for the start; idle 0.3 s.
    run_s = 0.05 + 1.4 * 0.25 + 0.5
    assert plan["seconds"] == pytest.approx([0.3 + 24 * run_s, 0.3 + 60 * run_s])
    assert "gpu_load 0,1,2 1000 --seconds 0.4" in plan["command"]
    shown = calibrated(machine, "--dry-run")
    assert "no clock is set" in shown.out and "4 in a round" in shown.out


def test_the_defaults_of_a_sweep_are_stated(gpu_machine: GpuMachine) -> None:
    load = workload(gpu_machine)
    plan = gpu_machine.run(["gpu", "calibrate", "--workload", load, "--dry-run", "--json"]).json
    assert plan["clocks_mhz"] == [210, 375, 555, 720, 900, 1065, 1245, 1410]
    assert plan["rounds"] == [2, 12] and plan["wanted_precision"] == 0.005
    own = gpu_machine.run(["gpu", "calibrate", "--dry-run", "--json"]).json["command"]
    assert "optbench.hardware.calibration.torch_load 0 1000 --kernel training" in own


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--counts", "1,2"], "but 1 device is given"),
        (["--device", "0,0"], "names a device twice"),
        (["--device", "7"], "unknown GPU '7'"),
        (["--span", "0.5..1"], "--span and --levels spread them: give either"),
        (["--kernel", "copy"], "--kernel is of our own load"),
        (["-o", "mine.html"], "name the profile .json"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_set(
    pair: GpuMachine, words: list[str], said: str
) -> None:
    before = len(pair.calls())
    done = calibrated(pair, *words)
    assert done.code == 2 and said in done.err, done.err
    assert len(pair.calls()) == before


def test_without_permission_there_is_the_clock_of_the_moment(gpu_machines: MachineMaker) -> None:
    """A limit of 200 W lets the device run at f = 1245 / 1410 = 0.883 and no higher:
    150 f³ + 50 f + 50 = 197.4 W, at 1260 MHz 201.7 W. T(1, f) = 0.002 + 0.008 / f = 0.01106 s."""
    machine = gpu_machines(deny_clocks=1, power_limit_w=200.0, has_counter=0, noise=0.01)
    load = workload(machine)
    words = ["gpu", "calibrate", "--current-clock", "-o", PROFILE, "--workload", load]
    words += ["--rounds", "2..3", "--precision", "0.001%", "--measure", "400ms", "--json"]
    done = machine.run([*words, "--settle", "50ms", "--idle", "400ms"], **state(machine))
    assert done.code == 0, done.err
    # Rounds are added as long as the intervals are too wide, up to three.
    assert (done.json["rounds"], done.json["runs"], done.json["precise"]) == (3, 3, False)
    found = profile_of(machine)
    law = found["laws"]["training"]
    assert (found["clocks"], law["alpha_p"], law["beta_t"]) == ([1.0], 0.0, 0.0)
    assert (law["gamma_p"], law["alpha_t"]) == pytest.approx((197.4, 0.01106), rel=0.01)
    runs = found["measurement"]["training"]
    assert {row[runs["columns"].index("seen_mhz")] for row in runs["runs"]} == {1245}
    assert (
        machine.calls() == [] and "the law holds at this clock only" in found["sources"]["clocks"]
    )


def test_two_models_are_two_profiles(gpu_machines: MachineMaker) -> None:
    machine = gpu_machines(num_devices=2)
    machine.set(1, name=b"NVIDIA L4")
    done = calibrated(machine, "--device", "0,1")
    assert done.code == 2 and "a profile is of one model" in done.err
