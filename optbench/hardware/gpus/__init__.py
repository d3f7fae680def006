"""GPUs through NVML: devices, readings, recordings and their energy."""
