"""Laws above the power of their board: flagged, named, and refused in what is shipped."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from optbench.model.builder import Model
from optbench.power.dvfs import Law
from optbench.power.profiles import BoardPowerWarning, Profile, board_power, profile, profile_names


def site_profile(row: dict[str, object]) -> Profile:
    """A site of the public coefficients as it was fitted, on the board it names."""
    laws = {}
    for kind in ("training", "inference"):
        part = row[kind]
        assert isinstance(part, dict)
        laws[kind] = Law(**part["latency"], **part["power"])
    idle_w, sleep_w, tdp_w = (float(str(row[key])) for key in ("p_idle_w", "p_sleep_w", "p_peak_w"))
    return Profile(
        f"site {row['gpu_type']}", idle_w, sleep_w, tdp_w, 24.0, (0.3, 0.5, 0.7, 0.8, 1.0), laws, {}
    )


def fitted_l4() -> Profile:
    """The L4 site of the public coefficients: 45 + 20 + 40 = 105 W in training, 40 + 12 + 35 = 87 W
    in inference, at clock 1.
    """
    laws = {
        "training": Law(0.0065, 0.06, 0.0022, 45.0, 20.0, 40.0),
        "inference": Law(0.0045, 0.025, 0.0012, 40.0, 12.0, 35.0),
    }
    return replace(profile("L4"), name="fitted L4", laws=laws)


def test_a_fitted_l4_above_72_w_is_flagged() -> None:
    # Training at clock 0.7 draws 15.4 + 14 + 40 = 69.4 W, at 0.8 already 23.0 + 16 + 40 = 79.0 W.
    # Inference: 13.7 + 8.4 + 35 = 57.1 W at 0.7, 20.5 + 9.6 + 35 = 65.1 W at 0.8, 29.2 + 10.8 + 35
    # = 75.0 W at 0.9.
    inference, training = fitted_l4().flags
    assert (training.kind, training.clock, training.board_w, training.from_clock) == (
        "training",
        1.0,
        72.0,
        0.8,
    )
    assert (inference.kind, inference.from_clock) == ("inference", 0.9)
    assert training.watts == pytest.approx(105.0)
    assert inference.watts == pytest.approx(87.0)
    assert str(training) == (
        "profile 'fitted L4': training draws 105 W at clock 1, the board has 72 W (exceeded from "
        "clock 0.8 on)"
    )


def test_of_the_public_sites_only_the_l4_exceeds_its_board(data_dir: Path) -> None:
    sites = json.loads((data_dir / "chsac-af" / "coefficients.json").read_text())["sites"]
    flags = {row["gpu_type"]: board_power(site_profile(row)) for row in sites.values()}
    assert {name for name, found in flags.items() if found} == {"L4"}
    assert [(flag.kind, round(flag.watts)) for flag in flags["L4"]] == [
        ("inference", 87),
        ("training", 105),
    ]


@pytest.mark.parametrize("name", profile_names())
def test_nothing_shipped_is_flagged(name: str) -> None:
    assert board_power(profile(name)) == ()


def test_a_clock_that_keeps_within_the_board_is_not_flagged() -> None:
    assert replace(fitted_l4(), clocks=(0.3, 0.5, 0.7)).flags == ()


def test_a_file_of_the_user_warns_with_names(tmp_path: Path) -> None:
    law = dict.fromkeys(("alpha_t", "beta_t", "gamma_t"), 0.1) | dict.fromkeys(
        ("alpha_p", "beta_p", "gamma_p"), 30
    )
    data = {
        "name": "mine",
        "idle_w": 15,
        "sleep_w": 8,
        "tdp_w": 72,
        "memory_gb": 24,
        "clocks": [0.5, 1.0],
        "sources": {},
        "laws": {"training": law},
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data))
    with pytest.warns(
        BoardPowerWarning,
        match=r"mine\.json: profile 'mine': training draws 90 W at clock 1, the board has 72 W",
    ):
        own = profile(path)
    assert [flag.kind for flag in own.flags] == ["training"]


def test_a_model_warns_of_a_flagged_profile_and_of_no_other() -> None:
    with pytest.warns(BoardPowerWarning) as caught:
        Model().pool("edge", profile=fitted_l4())
    texts = sorted(str(row.message) for row in caught)
    assert [text.partition(" W at")[0] for text in texts] == [
        "pool 'edge': profile 'fitted L4': inference draws 87",
        "pool 'edge': profile 'fitted L4': training draws 105",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Model().pool("edge", profile="L4")
        # At clocks up to 0.7 the same law keeps within the board.
        Model().pool("edge", profile=fitted_l4(), clocks=(0.3, 0.7))
