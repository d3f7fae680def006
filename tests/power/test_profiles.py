"""Profiles: the shipped ones are plausible and derived as they say; files of users are read or refused with the reason."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from optbench.errors import FileFormatError, ParameterError, UnknownNameError
from optbench.power.dvfs import Law
from optbench.power.profiles import Profile, profile, profile_names

EXPECTED = ("A10", "A100-PCIe", "A100-SXM", "CPU", "H100-SXM", "L4", "T4", "V100-PCIe")


def shipped(name: str) -> dict[str, Any]:
    text = (resources.files("optbench.power") / "data" / f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def test_the_first_set_is_shipped() -> None:
    assert profile_names() == EXPECTED


@pytest.mark.parametrize("name", EXPECTED)
def test_a_shipped_profile_stays_below_the_power_of_its_board(name: str) -> None:
    shape = profile(name)
    assert shape.kinds == ("inference", "training")
    assert shape.sleep_w < shape.idle_w
    for kind in shape.kinds:
        powers = [shape.power_w(kind, 1, clock) for clock in shape.clocks]
        assert powers == sorted(powers)
        assert shape.idle_w < powers[0]
        assert powers[-1] <= shape.tdp_w


@pytest.mark.parametrize("name", EXPECTED)
def test_every_constant_has_a_source_and_the_laws_follow_the_stated_rule(name: str) -> None:
    data = shipped(name)
    constants = set(data) - {"name", "sources"}
    assert set(data["sources"]) == constants
    assert "modelled" in data["sources"]["laws"]
    anchor = shipped("A100-PCIe")
    for kind, share in (("training", 0.85), ("inference", 0.70)):
        law, base = data["laws"][kind], anchor["laws"][kind]
        assert law["alpha_t"] == pytest.approx(base["alpha_t"] * anchor["bandwidth_gb_s"] / data["bandwidth_gb_s"], rel=1e-3)
        assert law["beta_t"] == pytest.approx(base["beta_t"] * anchor["peak_tflops"] / data["peak_tflops"], rel=1e-3)
        top = law["alpha_p"] + law["beta_p"] + law["gamma_p"]
        assert top == pytest.approx(share * data["tdp_w"], rel=1e-3)
        assert law["gamma_p"] / top == pytest.approx(base["gamma_p"] / (anchor["tdp_w"] * share), rel=1e-3)


def test_time_power_and_energy_by_hand() -> None:
    # A100-PCIe, training, 2 GPUs at half clock: T = (0.005 + 0.038 / 0.5 + 0.0014 * 2) / 2 = 0.0838 / 2 = 0.0419 s;
    # P = 77.09 / 8 + 71.16 / 2 + 106.74 = 151.95625 W per GPU, 303.9125 W for both; E = 303.9125 * 0.0419 = 12.73393... J.
    a100 = profile("A100-PCIe")
    assert a100.time_per_unit_s("training", 2, 0.5) == pytest.approx(0.0419)
    assert a100.power_w("training", 2, 0.5) == pytest.approx(303.9125)
    assert a100.energy_per_unit_j("training", 2, 0.5) == pytest.approx(303.9125 * 0.0419)
    # Alone there is nothing to keep in step: T = 0.005 + 0.076.
    assert a100.time_per_unit_s("training", 1, 0.5) == pytest.approx(0.081)


def test_the_cheapest_clock_lies_inside() -> None:
    # Constant power makes slow clocks dear, cubic power fast ones: energy per unit is least in between.
    t4 = profile("T4")
    energies = [t4.energy_per_unit_j("training", 1, clock) for clock in t4.clocks]
    assert 0 < energies.index(min(energies)) < len(energies) - 1


@pytest.mark.parametrize(
    ("gpus", "clock", "culprit"), [(0, 1.0, "gpus is 0"), (1, 0.0, "clock is 0.0"), (1, 1.5, "clock is 1.5")]
)
def test_an_operating_point_outside_the_law_is_refused(gpus: int, clock: float, culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        Law(1, 1, 0, 1, 1, 1).power_w(gpus, clock)


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'A100PCIe'; did you mean 'A100-PCIe'\?"):
        profile("A100PCIe")
    with pytest.raises(UnknownNameError, match=r"'trainign'; did you mean 'training'\?"):
        profile("L4").power_w("trainign", 1, 1.0)
    with pytest.raises(FileFormatError, match=r"nowhere\.json: no such profile file"):
        profile("nowhere.json")


def test_a_profile_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(shipped("L4") | {"name": "mine"}))
    mine, l4 = profile(path), profile("L4")
    assert isinstance(mine, Profile)
    assert (mine.name, mine.clocks, mine.laws) == ("mine", l4.clocks, l4.laws)


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"tdp_w": -1}, "tdp_w is -1"),
        ({"tdp_w": float("nan")}, "tdp_w is nan"),
        ({"idle_w": True}, "idle_w is True"),
        ({"tdp_w": 50}, "draws 61.2 W at the top clock, above tdp_w 50"),
        ({"sleep_w": 20}, "sleep_w 20, idle_w 15, tdp_w 72 must ascend"),
        ({"clocks": [0.5, 1.2]}, r"clocks are \[0.5, 1.2\]"),
        ({"clocks": []}, r"clocks is \[\]"),
        ({"laws": {}}, "laws is {}"),
        ({"laws": {"training": {"alpha_t": 1}}}, "laws.training: key 'beta_t' is missing"),
        ({"memory": 3}, r"unknown key 'memory'; did you mean 'memory_gb'\?"),
        ({"sources": 3}, "sources is 3"),
        ({"name": ""}, "name is ''"),
    ],
)
def test_a_bad_profile_names_file_field_and_value(tmp_path: Path, change: dict[str, Any], culprit: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(shipped("L4") | change))
    with pytest.raises(FileFormatError, match=f"bad.json.*{culprit}"):
        profile(path)


@pytest.mark.parametrize(
    ("content", "culprit"), [(b"{", "not JSON"), (b"[1]", "found list"), (b"\xff\xfe\x00", "not a text file")]
)
def test_what_is_no_profile_at_all(tmp_path: Path, content: bytes, culprit: str) -> None:
    path = tmp_path / "noise.json"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=culprit):
        profile(path)
