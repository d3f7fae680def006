"""A DVFS law of work with a given arithmetic intensity, from the figures of a profile.

A unit does the floating-point operations of a training unit, F = β_train · peak, and moves F / I
bytes at I operations per byte:

    α_t = F / (I · bandwidth)     seconds of moving data, which the clock does not shorten
    β_t = β_train                 seconds of computing at the top clock

The shipped laws have this form too (``sources`` of the profiles): α_t falls with the bandwidth and
β_t with the peak. With c = β_t / (α_t + β_t), the share of computing at the top clock, each
coefficient of power is c times that of training plus 1 - c times that of inference, because moving
data draws less dynamic power. The law is modelled, not measured.

A problem of s operations takes a launch of 30 µs and s operations at the rate that the work has
once it fills the device, which is c · peak. This is the law's saturation with the half size

    h = 30 µs · c · peak

The profiles have h = 30 µs · peak for all work; for work bound by memory that would be a launch of
30 µs / c, longer on the faster devices.
"""

from __future__ import annotations

from dataclasses import replace

from optbench.errors import ParameterError
from optbench.power.dvfs import Law
from optbench.power.profiles import Profile

COMPUTING, MOVING = "training", "inference"  # kinds of the profiles that give the power


def law_of_intensity(shape: Profile, flop_per_byte: float) -> Law:
    """The law of work that does ``flop_per_byte`` operations for each byte of device memory."""
    if shape.peak_tflops is None or shape.bandwidth_gb_s is None:
        missing = "peak_tflops" if shape.peak_tflops is None else "bandwidth_gb_s"
        raise ParameterError(
            f"profile {shape.name!r} has no {missing}; a law by arithmetic intensity needs "
            "peak_tflops and bandwidth_gb_s: add both to the profile's file"
        )
    if not flop_per_byte > 0:
        raise ParameterError(f"flop_per_byte is {flop_per_byte!r}; it must be positive")
    computing, moving = shape.law(COMPUTING), shape.law(MOVING)
    gflop = computing.beta_t * shape.peak_tflops * 1e3
    law = replace(computing, alpha_t=gflop / flop_per_byte / shape.bandwidth_gb_s)
    share = computing_share(law)

    def mixed(computing_w: float, moving_w: float) -> float:
        return share * computing_w + (1 - share) * moving_w

    return replace(
        law,
        alpha_p=mixed(computing.alpha_p, moving.alpha_p),
        beta_p=mixed(computing.beta_p, moving.beta_p),
        gamma_p=mixed(computing.gamma_p, moving.gamma_p),
    )


def with_equal_launches(law: Law) -> Law:
    """The law with the half size that makes a launch equally long on every device."""
    return replace(law, half_size_gflop=law.half_size_gflop * computing_share(law))


def computing_share(law: Law) -> float:
    """c: the share of a unit's time at the top clock that the clock can shorten."""
    return law.beta_t / (law.alpha_t + law.beta_t)
