"""Power and time of real devices by clock and number, as coefficients of the DVFS law."""
