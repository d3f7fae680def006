"""Zones of a made-up powercap tree: what counts, and why one cannot be used."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from optbench.hardware.cpu_energy import powercap_zones
from optbench.hardware.cpu_energy.powercap_zones import CpuEnergyError, find_zones
from tests.hardware.made_up_powercap import MadeUpPowercap


def test_packages_and_their_memory_count_and_nothing_twice(tmp_path: Path) -> None:
    MadeUpPowercap(tmp_path, packages=2, range_j=65_536.0)
    zones = find_zones(tmp_path)
    # Neither core and uncore (inside a package), nor psys (contains them), nor the second interface
    assert [(zone.label, zone.package) for zone in zones] == [
        ("package-0", 0),
        ("package-1", 1),
        ("package-0 dram", 0),
        ("package-1 dram", 1),
    ]
    assert {zone.range_j for zone in zones} == {65_536.0}


def test_a_nested_tree_and_dies_and_the_second_interface_alone(tmp_path: Path) -> None:
    nested = tmp_path / "nested" / "intel-rapl" / "intel-rapl:0"
    for folder, name in ((nested, "package-0-die-1"), (nested / "intel-rapl:0:0", "dram")):
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text("1500000\n")
        (folder / "max_energy_range_uj").write_text("65536000000\n")
    zones = find_zones(tmp_path / "nested")
    assert [(zone.label, zone.package) for zone in zones] == [
        ("package-0-die-1", 0),
        ("package-0-die-1 dram", 0),
    ]
    assert powercap_zones.read_counter_j(zones[0]) == 1.5
    tree = MadeUpPowercap(tmp_path / "mmio")
    for place in tree.root.glob("intel-rapl:*"):
        place.rename(tree.root / f"other-{place.name}")
    assert [zone.counter.parent.name for zone in find_zones(tree.root)] == ["intel-rapl-mmio:0"]


def test_the_root_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MadeUpPowercap(tmp_path)
    monkeypatch.setenv("OPTBENCH_POWERCAP_ROOT", str(tmp_path))
    assert [zone.label for zone in find_zones()] == ["package-0", "package-0 dram"]
    monkeypatch.delenv("OPTBENCH_POWERCAP_ROOT")
    assert powercap_zones.powercap_root() == Path("/sys/class/powercap")


def test_a_tree_that_is_not_there_or_has_no_package(tmp_path: Path) -> None:
    with pytest.raises(CpuEnergyError, match=r"no folder .*missing.*modprobe.*POWERCAP_ROOT"):
        find_zones(tmp_path / "missing")
    with pytest.raises(CpuEnergyError, match=r"no package among its zones \(none\)"):
        find_zones(tmp_path)


def test_a_counter_that_holds_no_number(tmp_path: Path) -> None:
    tree = MadeUpPowercap(tmp_path)
    (tree.zones["package-0"] / "energy_uj").write_text("-5\n")
    with pytest.raises(CpuEnergyError, match=r"intel-rapl:0/energy_uj holds '-5'"):
        find_zones(tmp_path)


def test_a_counter_that_only_root_may_read_names_the_remedy() -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        counter = MadeUpPowercap(root).zones["package-0 dram"] / "energy_uj"
        counter.chmod(0)
        said = as_another_user(root)
    assert f"only root may read {counter}" in said
    assert f"sudo chmod a+r {root}/intel-rapl:*/energy_uj" in said


def as_another_user(root: Path) -> str:
    """Look at the tree in a child that is not root, who may read everything."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(65_534)
        try:
            find_zones(root)
        except CpuEnergyError as error:
            os.write(write_end, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end) as answer:
        return answer.read()
