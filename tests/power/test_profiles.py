"""Profiles: the shipped ones are plausible and derived as they say; files of users are read or
refused with the reason.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from optbench.errors import FileFormatError, ParameterError, UnknownNameError
from optbench.power.profiles import ALIASES, Profile, profile, profile_names

EXPECTED = (
    "A10",
    "A100-PCIe",
    "A100-SXM",
    "A30",
    "C2070",
    "CPU",
    "H100-SXM",
    "H200",
    "K40c",
    "K80",
    "L4",
    "L40S",
    "P100",
    "T4",
    "V100-PCIe",
)
# The devices as people name them.
NAMES = (
    "K40c",
    "K80",
    "C2070",
    "T4",
    "P100",
    "V100",
    "L4",
    "A10",
    "A30",
    "A100",
    "L40S",
    "H100",
    "H200",
    "CPU",
)


def shipped(name: str) -> dict[str, Any]:
    text = (resources.files("optbench.power") / "data" / f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def test_the_set_is_shipped() -> None:
    assert profile_names() == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_every_device_has_a_plain_name(name: str) -> None:
    assert profile(name).name in (name, *(full for full in EXPECTED if full.startswith(f"{name}-")))


def test_a_bare_name_means_one_variant() -> None:
    assert {short: profile(short).name for short in ("A100", "V100", "H100")} == ALIASES
    assert ALIASES == {"A100": "A100-PCIe", "V100": "V100-PCIe", "H100": "H100-SXM"}


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
    assert shape.flags == ()


@pytest.mark.parametrize("name", EXPECTED)
def test_every_constant_has_a_source_and_the_laws_follow_the_stated_rule(name: str) -> None:
    data = shipped(name)
    constants = set(data) - {"name", "sources"}
    assert set(data["sources"]) == constants
    assert "modelled" in data["sources"]["laws"]
    anchor = shipped("A100-PCIe")
    for kind, share in (("training", 0.85), ("inference", 0.70)):
        law, base = data["laws"][kind], anchor["laws"][kind]
        assert law["alpha_t"] == pytest.approx(
            base["alpha_t"] * anchor["bandwidth_gb_s"] / data["bandwidth_gb_s"], rel=1e-3
        )
        assert law["beta_t"] == pytest.approx(
            base["beta_t"] * anchor["peak_tflops"] / data["peak_tflops"], rel=1e-3
        )
        top = law["alpha_p"] + law["beta_p"] + law["gamma_p"]
        assert top == pytest.approx(share * data["tdp_w"], rel=1e-3)
        assert law["gamma_p"] / top == pytest.approx(
            base["gamma_p"] / (anchor["tdp_w"] * share), rel=1e-3
        )
        assert law["half_size_gflop"] == pytest.approx(30e-6 * data["peak_tflops"] * 1e3, rel=1e-3)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_nameplate_value_names_its_document_and_a_modelled_one_its_rule(name: str) -> None:
    sources = shipped(name)["sources"]
    for key in ("tdp_w", "memory_gb", "peak_tflops", "bandwidth_gb_s"):
        assert sources[key].startswith("nameplate: ")
    for key in ("idle_w", "sleep_w", "clocks"):
        assert sources[key].startswith(
            ("modelled: ", "reading: ", "filrg/distributed_cluster_GPUs ")
        )


def test_time_power_and_energy_by_hand() -> None:
    # A100-PCIe, training, 2 GPUs at half clock: T = (0.005 + 0.038 / 0.5 + 0.0014 * 2) / 2 = 0.0838
    # / 2 = 0.0419 s; P = 77.09 / 8 + 71.16 / 2 + 106.74 = 151.95625 W per GPU, 303.9125 W for both;
    # E = 303.9125 * 0.0419 = 12.73393... J.
    a100 = profile("A100-PCIe")
    assert a100.time_per_unit_s("training", 2, 0.5) == pytest.approx(0.0419)
    assert a100.power_w("training", 2, 0.5) == pytest.approx(303.9125)
    assert a100.energy_per_unit_j("training", 2, 0.5) == pytest.approx(303.9125 * 0.0419)
    # Alone there is nothing to keep in step: T = 0.005 + 0.076.
    assert a100.time_per_unit_s("training", 1, 0.5) == pytest.approx(0.081)


def test_the_cheapest_clock_lies_inside() -> None:
    # Constant power makes slow clocks dear, cubic power fast ones: energy per unit is least in
    # between.
    t4 = profile("T4")
    energies = [t4.energy_per_unit_j("training", 1, clock) for clock in t4.clocks]
    assert 0 < energies.index(min(energies)) < len(energies) - 1


def test_half_of_the_throughput_at_half_size_by_hand() -> None:
    # A100-PCIe, training: h = 9.36 GFLOP. One GPU at clock 1 takes 0.043 s per unit when full, so
    # 0.086 s at 9.36 GFLOP; power there is 106.74 + (77.09 + 71.16) / 2 = 180.865 W instead of
    # 254.99 W.
    a100 = profile("A100-PCIe")
    assert a100.law("training").half_size_gflop == 9.36
    assert a100.time_per_unit_s("training", 1, 1.0, 9.36) == pytest.approx(0.086)
    assert a100.power_w("training", 1, 1.0, 9.36) == pytest.approx(180.865)
    assert a100.energy_per_unit_j("training", 1, 1.0, 9.36) == pytest.approx(180.865 * 0.086)
    # Two GPUs share the problem: each has 4.68 GFLOP and is a third full.
    assert a100.law("training").filled(2, 9.36) == pytest.approx(1 / 3)
    assert a100.time_per_unit_s("training", 2, 1.0, 9.36) == pytest.approx(
        3 * a100.time_per_unit_s("training", 2, 1.0)
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_throughput_rises_with_size_up_to_the_law_without_one(name: str) -> None:
    shape = profile(name)
    for kind in shape.kinds:
        for gpus in (1, 4):
            times = [
                shape.time_per_unit_s(kind, gpus, 0.7, size)
                for size in (0.01, 0.1, 1.0, 10.0, 1e3, 1e9)
            ]
            assert times == sorted(times, reverse=True)
            assert times[-1] == pytest.approx(shape.time_per_unit_s(kind, gpus, 0.7), rel=1e-6)
            # A device that is not full draws less, and never less than its constant part.
            assert (
                shape.law(kind).gamma_p
                < shape.power_w(kind, 1, 1.0, 0.1)
                < shape.power_w(kind, 1, 1.0)
            )


def test_small_problems_do_not_profit_from_big_gpus() -> None:
    # Full, an H100 trains 14 times as fast as a T4 and 162 times as fast as a CPU; at 1 MFLOP no
    # device gains a third.
    def time_s(name: str, size_gflop: float | None) -> float:
        return profile(name).time_per_unit_s("training", 1, 1.0, size_gflop)

    assert time_s("T4", None) / time_s("H100", None) > 14
    assert time_s("CPU", None) / time_s("H100", None) > 160
    tiny = [time_s(name, 1e-3) for name in EXPECTED]
    assert max(tiny) / min(tiny) < 4 / 3


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(size: float) -> None:
    with pytest.raises(ParameterError, match=f"size_gflop is {size!r}"):
        profile("L4").time_per_unit_s("training", 1, 1.0, size)


@pytest.mark.parametrize(
    ("gpus", "clock", "culprit"),
    [(0, 1.0, "gpus is 0"), (1, 0.0, "clock is 0.0"), (1, 1.5, "clock is 1.5")],
)
def test_an_operating_point_outside_the_law_is_refused(
    gpus: int, clock: float, culprit: str
) -> None:
    with pytest.raises(ParameterError, match=culprit):
        profile("L4").power_w("training", gpus, clock)


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
        ({"idle_w": True}, "idle_w is true"),
        ({"peak_tflops": "many"}, "peak_tflops is 'many'"),
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
def test_a_bad_profile_names_file_field_and_value(
    tmp_path: Path, change: dict[str, Any], culprit: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(shipped("L4") | change))
    with pytest.raises(FileFormatError, match=f"bad.json.*{culprit}"):
        profile(path)


@pytest.mark.parametrize(
    ("content", "culprit"),
    [(b"{", "not JSON"), (b"[1]", "found list"), (b"\xff\xfe\x00", "not a text file")],
)
def test_what_is_no_profile_at_all(tmp_path: Path, content: bytes, culprit: str) -> None:
    path = tmp_path / "noise.json"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=culprit):
        profile(path)


def with_measurement(folder: Path, measurement: object) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps({**shipped("L4"), "measurement": measurement}))
    return path


def test_a_profile_says_how_it_was_measured(tmp_path: Path) -> None:
    record = {"training": {"host": "here", "runs": [[1, 2.5]]}}
    found = profile(with_measurement(tmp_path, record))
    assert found.measurement == record
    assert profile("L4").measurement is None
    # The measurement is a note: nothing else differs.
    assert (found.laws, found.clocks, found.tdp_w) == (
        profile("L4").laws,
        profile("L4").clocks,
        profile("L4").tdp_w,
    )


@pytest.mark.parametrize("measurement", [[], "yesterday", {"rendering": {}}, {"training": 3}])
def test_a_measurement_of_no_law_is_refused(tmp_path: Path, measurement: object) -> None:
    with pytest.raises(FileFormatError, match=r"measurement is .* inference, training"):
        profile(with_measurement(tmp_path, measurement))
