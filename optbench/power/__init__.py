"""GPU profiles and the DVFS law: time, power and energy of a unit of work."""
