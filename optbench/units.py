"""Units and constants that more than one module needs; a name says its unit."""

from __future__ import annotations

HOUR_S, DAY_S = 3600.0, 86_400.0
# Of the units in which a duration may be written.
SECONDS_PER = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": HOUR_S, "d": DAY_S}
J_PER_KWH = 3.6e6
KB_PER_MB = 1024
BYTES_PER_MB = KB_PER_MB * 1024

# Floats hold every whole number up to here.
EXACT = 2**53
# The largest distance between neighbouring floats, as a share of them.
LARGEST_ULP = 2.0**-52
# A product this near to a whole number is that number: in units of its last place, and in ticks.
GUARD_ULPS, GUARD_TICKS = 8.0, 0.25
# Sums of a million floats, none of them negative, are off by far less than this share.
SUM_MARGIN = 1e-9
# Sums that `math.fsum` adds up, of either sign, are off by far less than this share of the sum of
# the terms' magnitudes, which carry the rounding.
TERM_MARGIN = 1e-12
# Results that differ by this share are equal: the difference is rounding.
EQUAL = 1e-9
