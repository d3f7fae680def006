"""The structures of nvml_stub/gpu_state.h for ctypes: the state of a made-up machine with GPUs."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_double, c_int32, c_int64, c_uint64

MAX_DEVICES, MAX_CLOCKS, MAX_LOADS, MAX_SEGMENTS, MAX_CALLS = 16, 128, 32, 1024, 512


class SegmentState(ctypes.Structure):
    """Watts from a moment on."""

    _fields_ = (("from_ns", c_int64), ("watts", c_double))


class DeviceState(ctypes.Structure):
    """A device: what a test chooses, then what the library keeps; the header says what each is."""

    _fields_ = (
        ("uuid", c_char * 96),
        ("name", c_char * 96),
        ("clocks_mhz", c_int32 * MAX_CLOCKS),
        *((name, c_int32) for name in ("num_clocks", "memory_clock_mhz", "application_clock_mhz")),
        *((name, c_int32) for name in ("locked_low_mhz", "locked_high_mhz")),
        *((name, c_int32) for name in ("instant_power", "has_counter", "has_power")),
        *((name, c_int32) for name in ("architecture", "mean_power")),
        *((name, c_int32) for name in ("deny_clocks", "mig", "cap_mhz")),
        ("cap_reasons", c_uint64),
        *((name, c_int64) for name in ("cap_from_ns", "cap_until_ns", "lost_from_ns")),
        *((name, c_double) for name in ("memory_gb", "power_limit_w")),
        *((name, c_double) for name in ("alpha_p", "beta_p", "gamma_p", "idle_w")),
        *((name, c_double) for name in ("alpha_t", "beta_t", "gamma_t", "half_size")),
        *((name, c_double) for name in ("noise", "time_noise", "spike_w")),
        *((name, c_int64) for name in ("spike_width_ns", "spike_period_ns", "counter_step_ns")),
        ("control_ns", c_int64),
        *((name, c_int32) for name in ("pids", "in_call", "in_call_pid")),
        ("energy_j", c_double),
        ("num_readings", c_int64),
        ("num_segments", c_int64),
        ("segments", SegmentState * MAX_SEGMENTS),
    )


class LoadState(ctypes.Structure):
    """A load program at work."""

    _fields_ = (
        *((name, c_int32) for name in ("active", "pid", "num_devices")),
        ("devices", c_int32 * MAX_DEVICES),
        *((name, c_double) for name in ("size", "target_units", "units")),
        *((name, c_int64) for name in ("began_ns", "until_ns", "ended_ns")),
    )


class CallState(ctypes.Structure):
    """A call that set clocks or reset them."""

    _fields_ = (
        ("at_ns", c_int64),
        *((name, c_int32) for name in ("pid", "device", "kind", "low_mhz", "high_mhz", "result")),
    )


class MachineState(ctypes.Structure):
    """The whole file."""

    _fields_ = (
        ("size", c_uint64),
        ("lock", c_uint64 * 8),
        ("driver", c_char * 80),
        *((name, c_int64) for name in ("began_ns", "now_ns", "checked_ns")),
        *((name, c_uint64) for name in ("noise_seed", "noise_count")),
        *((name, c_int32) for name in ("num_devices", "init_result")),
        ("num_calls", c_int64),
        ("calls", CallState * MAX_CALLS),
        ("loads", LoadState * MAX_LOADS),
        ("devices", DeviceState * MAX_DEVICES),
    )
