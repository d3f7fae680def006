"""Laws by arithmetic intensity: derived from a profile's figures by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optbench.errors import ParameterError
from optbench.power.dvfs import Law
from optbench.power.profiles import Profile, profile
from optbench.power.roofline import computing_share, law_of_intensity, with_equal_launches

TRAINING = Law(0.5, 1.0, 0.25, 60.0, 40.0, 100.0, 60.0)
INFERENCE = Law(1.0, 1.0, 0.5, 20.0, 80.0, 60.0, 60.0)
# 2 TFLOPS for 1 s at the top clock: a unit is 2,000 GFLOP. 500 GB/s.
MADE = Profile(
    "made", 10.0, 5.0, 300.0, 16.0, (0.5, 1.0),
    {"training": TRAINING, "inference": INFERENCE}, {}, 2.0, 500.0,
)  # fmt: skip


def test_data_take_their_volume_over_the_bandwidth() -> None:
    # 2,000 GFLOP at 4 operations per byte are 500 GB, 1 s; computing takes 1 s: c = 1/2.
    law = law_of_intensity(MADE, 4.0)
    assert (law.alpha_t, law.beta_t, law.gamma_t) == (1.0, 1.0, 0.25)
    # Half of training's coefficients of power and half of inference's.
    assert (law.alpha_p, law.beta_p, law.gamma_p) == (40.0, 60.0, 80.0)
    assert law.half_size_gflop == 60.0


def test_work_bound_by_memory_gains_little_from_the_clock() -> None:
    # 0.5 operations per byte: 4,000 GB, 8 s, and 1 s of computing. Half the clock: 10 s for 9 s.
    law = law_of_intensity(MADE, 0.5)
    assert law.time_per_unit_s(1, 0.5) / law.time_per_unit_s(1, 1.0) == pytest.approx(10 / 9)
    # 400 operations per byte: 5 GB, 0.01 s. Half the clock takes 2.01 s for 1.01 s.
    law = law_of_intensity(MADE, 400.0)
    assert law.time_per_unit_s(1, 0.5) / law.time_per_unit_s(1, 1.0) == pytest.approx(2.01 / 1.01)


def test_a_launch_takes_equally_long_whatever_binds_the_work() -> None:
    # The half size 60 GFLOP is a launch of 30 ms at 2 TFLOPS. With c = 1/2 the rate is 1 TFLOPS: a
    # problem of 1 GFLOP takes 30 ms and 1 ms, and a unit has 2,000 problems, 62 s.
    law = with_equal_launches(law_of_intensity(MADE, 4.0))
    assert computing_share(law) == 0.5
    assert law.half_size_gflop == 30.0
    assert law.time_per_unit_s(1, 1.0, 1.0) == pytest.approx(62.0)


def test_power_of_a_derived_law_stays_within_the_board() -> None:
    for name in ("H100-SXM", "L4", "C2070", "CPU"):
        shape = profile(name)
        for flop_per_byte in (0.1, 2.0, 60.0, 600.0):
            law = law_of_intensity(shape, flop_per_byte)
            assert law.power_w(1, 1.0) <= shape.tdp_w


def test_missing_figures_are_named() -> None:
    with pytest.raises(ParameterError, match="profile 'made' has no bandwidth_gb_s"):
        law_of_intensity(replace(MADE, bandwidth_gb_s=None), 1.0)
    with pytest.raises(ParameterError, match=r"flop_per_byte is 0\.0; it must be positive"):
        law_of_intensity(MADE, 0.0)
