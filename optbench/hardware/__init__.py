"""Measured machines: GPUs through NVML, the energy of processors, calibration, clock control."""
