"""Measured machines: GPUs through NVML, processors through powercap, the energy of runs."""
