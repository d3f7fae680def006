"""GPU profiles and the law of clocks: time, power and energy of a unit of work."""
