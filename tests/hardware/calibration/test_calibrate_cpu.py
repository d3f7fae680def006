"""``optbench gpu calibrate`` on processors: by RAPL's counters and cpufreq, both made up; and what
it says where there is neither.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from optbench.errors import OptbenchError
from optbench.hardware.calibration.cpu_target import CpuTarget
from optbench.hardware.calibration.cpufreq_levels import (
    CpuClockError,
    clock_levels_mhz,
    find_policies,
    put_back,
    set_clock,
    why_fixed,
)
from optbench.power.profiles import profile
from tests.cli.conftest import COMMAND, TIMEOUT_S, Cli, Outcome, environment
from tests.hardware.calibration.made_up_cpus import MadeUpCpus

# The processes that advance the counters wait for a core on a busy host, by a tenth of these runs.
QUICK = (
    *("--rounds", "1", "--measure", "300ms", "--settle", "20ms", "--period", "5ms"),
    *("--noise", "60%"),
)
MEMORY_W = 4.0


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs ``optbench WORDS`` in ``tmp_path``, on a machine without GPUs."""

    def run(*words: str | Path, **variables: str) -> Outcome:
        done = subprocess.run(
            [*COMMAND, *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=tmp_path,
            env={**environment(), "LD_LIBRARY_PATH": "", **variables},
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def cpus(tmp_path: Path) -> Iterator[MadeUpCpus]:
    found = MadeUpCpus(tmp_path)
    with found.tree.drawing({"package-0 dram": MEMORY_W}):
        yield found


def test_processors_with_clocks(cpus: MadeUpCpus, cli: Cli, tmp_path: Path) -> None:
    """P(f) = 20 f³ + 10 f + 5 + 4 W of memory; T = 0.01 / f s."""
    words = ("gpu", "calibrate", "--device", "cpu", "-o", "cpu.json", *QUICK, "--idle", "300ms")
    done = cli(*words, "--workload", cpus.load, **cpus.variables)
    assert done.code == 0, done.err
    assert cpus.ranges() == {("800000", "2000000")}
    shape = profile(tmp_path / "cpu.json")
    assert shape.clocks == (0.4, 0.6, 0.8, 1.0)
    law = shape.law("training")
    assert shape.power_w("training", 1, 1.0) == pytest.approx(39, rel=0.15)
    assert (law.beta_t, law.alpha_t) == pytest.approx((0.01, 0.0), abs=1e-3)
    assert shape.idle_w == pytest.approx(MEMORY_W, rel=0.2)
    data = json.loads((tmp_path / "cpu.json").read_text())
    record = data["measurement"]["training"]
    assert record["clocks_mhz"] == [800, 1200, 1600, 2000] and "powercap" in record["driver"]
    assert "highest power measured" in data["sources"]["tdp_w"]


def test_processors_with_the_one_clock_there_is(cli: Cli, tmp_path: Path) -> None:
    """Without cpufreq the law is a constant: 35 + 4 W, 0.01 s per unit."""
    found = MadeUpCpus(tmp_path, clocks=False)
    words = ("gpu", "calibrate", "-o", "cpu.json", *QUICK, "--rounds", "2", "--idle", "300ms")
    with found.tree.drawing({"package-0 dram": MEMORY_W}):
        done = cli(*words, "--workload", found.load, **found.variables)
    assert done.code == 0, done.err
    assert "no GPU: no NVIDIA driver" in done.err
    shape = profile(tmp_path / "cpu.json")
    law = shape.law("training")
    assert shape.clocks == (1.0,) and (law.alpha_p, law.beta_p, law.beta_t) == (0, 0, 0)
    assert (law.gamma_p, law.alpha_t) == pytest.approx((39, 0.01), rel=0.15)
    assert "the law holds at this clock only" in shape.sources["clocks"]


def test_a_machine_that_cannot_measure_says_so(cli: Cli, tmp_path: Path) -> None:
    missing = {"OPTBENCH_POWERCAP_ROOT": str(tmp_path / "none")}
    done = cli("gpu", "calibrate", "-o", "x.json", **missing)
    assert done.code == 2 and "nothing can be calibrated here" in done.err
    assert "libnvidia-ml.so.1 not found" in done.err and "modprobe intel_rapl_msr" in done.err
    done = cli("gpu", "calibrate", "-o", "x.json", "--device", "cpu", "--json", **missing)
    assert done.code == 2 and f"no folder {tmp_path / 'none'}" in done.json["error"]
    done = cli("gpu", "calibrate", "-o", "x.json", "--device", "0", **missing)
    assert done.code == 2 and "`--device cpu` calibrates the processors" in done.err
    assert not list(tmp_path.iterdir())


def test_clocks_need_several_levels_and_cpufreq(tmp_path: Path, cli: Cli) -> None:
    found = MadeUpCpus(tmp_path, clocks=False)
    words = ("gpu", "calibrate", "--device", "cpu", "-o", "x.json", "--clocks", "1000,2000")
    done = cli(*words, "--workload", found.load, **found.variables)
    assert done.code == 2 and "no clock can be set" in done.err and "no cpufreq" in done.err


def test_the_range_of_clocks_is_never_upside_down(tmp_path: Path) -> None:
    """Down from 2000 the least clock is set first, and up from 800 the largest."""
    found = MadeUpCpus(tmp_path)
    policies = find_policies(found.cpus)
    assert clock_levels_mhz(policies) == (800, 1200, 1600, 2000)
    assert why_fixed(policies, found.cpus) == ""
    set_clock(policies, 800)
    assert found.ranges() == {("800000", "800000")}
    set_clock(policies, 2000)
    assert found.ranges() == {("2000000", "2000000")}
    put_back(policies)
    assert found.ranges() == {("800000", "2000000")}


def test_a_range_without_a_list_is_spread(tmp_path: Path) -> None:
    found = MadeUpCpus(tmp_path)
    for place in found.cpus.glob("cpufreq/policy*"):
        (place / "scaling_available_frequencies").unlink()
        (place / "cpuinfo_min_freq").write_text("500000\n")
    levels = clock_levels_mhz(find_policies(found.cpus))
    assert (levels[0], levels[-1], len(levels)) == (500, 2000, 16)


def test_a_clock_that_cannot_be_written_names_the_file(tmp_path: Path) -> None:
    found = MadeUpCpus(tmp_path)
    policies = find_policies(found.cpus)
    target = found.cpus / "cpufreq" / "policy1" / "scaling_min_freq"
    target.unlink()
    target.mkdir()
    with pytest.raises(CpuClockError, match="policy1/scaling_min_freq cannot be set to 800000 kHz"):
        set_clock(policies, 800)


def test_clocks_are_put_back_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = MadeUpCpus(tmp_path)
    monkeypatch.setenv("OPTBENCH_GPU_STATE", str(found.state))
    target = CpuTarget(found.tree.root, found.cpus)
    with pytest.raises(OptbenchError, match="stop"), target.clocks() as clocks:
        clocks.hold(1, 1200)
        assert found.ranges() == {("1200000", "1200000")}
        raise OptbenchError("stop")
    assert found.ranges() == {("800000", "2000000")}


def test_the_limit_of_a_package_is_the_power_of_its_board(tmp_path: Path) -> None:
    found = MadeUpCpus(tmp_path)
    assert CpuTarget(found.tree.root, found.cpus).power_limit_w is None
    (found.tree.zones["package-0"] / "constraint_0_power_limit_uw").write_text("125000000\n")
    target = CpuTarget(found.tree.root, found.cpus)
    assert target.power_limit_w == 125.0
    assert target.memory_gb is not None and target.memory_gb > 0.1
