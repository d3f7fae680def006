"""The page of a calibrated profile: every run is a mark, every word of a user is escaped."""

from __future__ import annotations

import re
from typing import Any

import pytest

from optbench.html.calibration_page import render_calibration

COLUMNS = [
    *("clock_mhz", "count", "round", "watts", "seconds_per_unit", "units", "steady_s"),
    *("scatter", "source", "seen_mhz", "temperature_c", "refused"),
]
LAW = {
    "alpha_p": 50.0,
    "beta_p": 30.0,
    "gamma_p": 20.0,
    "alpha_t": 0.1,
    "beta_t": 0.9,
    "gamma_t": 0.0,
}


def fit(names: tuple[str, ...], misfits: bool) -> dict[str, Any]:
    return {
        "intervals": {name: [0.9 * LAW[name], 1.1 * LAW[name]] for name in names},
        "largest_residual_of_a_point": 0.021,
        "misfits": misfits,
    }


def document(misfits: bool = False, fixed: bool = False) -> dict[str, Any]:
    """Four clocks of 1000 MHz, of which the third is 1.5 % above the law in power, and one that was
    throttled."""
    runs = [
        [mhz, 1, 1, watts, 0.1 + 900 / mhz, 10, 8.0, 0.001, "counter", mhz, 60.0, ""]
        for mhz, watts in ((250, 28.28), (500, 41.25), (750, 63.59375 * 1.015), (900, 83.45))
    ]
    runs.append([1000, 1, 1, 90.0, 1.2, 8, 8.0, 0.001, "counter", 950, 91.0, "throttled by <cap>"])
    return {
        "name": "My <GPU>",
        "idle_w": 15.0,
        "sleep_w": 15.0,
        "tdp_w": 120.0,
        "memory_gb": 8.0,
        "laws": {"training": LAW},
        "sources": {"idle_w": "measured"},
        "measurement": {
            "training": {
                "columns": COLUMNS,
                "runs": runs,
                "counts": [1],
                "top_clock_mhz": None if fixed else 1000,
                "devices": [{"place": "0", "name": "My <GPU>", "uuid": "GPU-1"}],
                "workload": "./load --a<b {device}",
                "left_out": ["1000 MHz on 1 device: throttled by <cap>"],
                "power": fit(("alpha_p", "beta_p", "gamma_p"), misfits),
                "time": fit(("alpha_t", "beta_t", "gamma_t"), False),
            }
        },
    }


def test_every_used_run_is_a_mark_with_its_residual() -> None:
    text = render_calibration(document())
    # Four charts with four marks each; the refused run stands in the table alone.
    assert len(re.findall('class="mark"', text)) == 16
    # The law at 750 MHz is 50 · 0.421875 + 22.5 + 20 = 63.59375 W; measured is 1.5 % more.
    assert "750 MHz, round 1\n1.5 %" in text
    assert text.count("throttled by &lt;cap&gt;") == 2


def test_words_of_users_are_escaped() -> None:
    text = render_calibration(document())
    assert "My &lt;GPU&gt;" in text and "--a&lt;b" in text
    assert (
        "<GPU>" not in text
        and "<cap>" not in text
        and "http" not in text.replace('xmlns="http', "")
    )


@pytest.mark.parametrize("misfits", [False, True])
def test_a_law_that_misses_its_points_is_said_to(misfits: bool) -> None:
    text = render_calibration(document(misfits))
    assert ("does not follow the law exactly" in text) == misfits
    assert "Power: the mean of a point is off by 2.1 % at most" in text


def test_the_one_clock_there_is() -> None:
    data = document(fixed=True)
    law = {"alpha_p": 0.0, "beta_p": 0.0, "gamma_p": 50.0, "alpha_t": 1.0, "beta_t": 0.0}
    data["laws"] = {"training": {**law, "gamma_t": 0.0}}
    text = render_calibration(data)
    assert "the one clock that there is" in text and len(re.findall('class="mark"', text)) == 16
