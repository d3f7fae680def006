"""Energy of processors: RAPL's counters in the powercap tree, and an estimate without them."""
