"""A DVFS law of work with a given arithmetic intensity, from the figures of a profile.

A unit does the floating-point operations of a training unit, F = β_train · peak, and moves F / I
bytes at I operations per byte:

    α_t = F / (I · bandwidth)     seconds of moving data, which the clock does not shorten
    β_t = β_train                 seconds of computing at the top clock

The shipped laws have this form too (``sources`` of the profiles): α_t falls with the bandwidth and
β_t with the peak. With c = β_t / (α_t + β_t), the share of computing at the top clock, each
coefficient of power is c times that of training plus 1 - c times that of inference, because moving
data draws less dynamic power. The law is modelled, not measured.
"""

from __future__ import annotations

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
    alpha_t = gflop / flop_per_byte / shape.bandwidth_gb_s
    share = computing.beta_t / (alpha_t + computing.beta_t)

    def mixed(name: str) -> float:
        return share * getattr(computing, name) + (1 - share) * getattr(moving, name)

    return Law(
        alpha_t,
        computing.beta_t,
        computing.gamma_t,
        mixed("alpha_p"),
        mixed("beta_p"),
        mixed("gamma_p"),
        computing.half_size_gflop,
    )
