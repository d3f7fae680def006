"""What an error of NVML means on a device and what to do about it, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from optbench.errors import OptbenchError

# Results of NVML that have a message of their own (nvml.h).
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = 2, 3, 4
DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 9, 12
FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH = 13, 15, 16, 18
# Results after which a device does not answer any more.
GONE = (GPU_IS_LOST, RESET_REQUIRED)


# A driver that counts no device.
NO_GPU = "an NVIDIA driver is installed, but there is no GPU"


class GpuUnavailableError(OptbenchError):
    """There is no NVIDIA driver that answers; ``reason`` says why."""

    def __init__(self, reason: str, has_library: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.has_library = reason, has_library


class GpuError(OptbenchError):
    """A call on a device failed: names device, call and what to do; ``code`` is NVML's result."""

    def __init__(self, device: str, call: str, code: int, words: str) -> None:
        super().__init__(f"{device}: {call}: {words}")
        self.device, self.call, self.code, self.words = device, call, code, words

    @property
    def is_gone(self) -> bool:
        """Whether the device does not answer any more."""
        return self.code in GONE


def unavailable(code: int, said: str) -> GpuUnavailableError:
    """The error of a session that cannot begin."""
    known = {
        LIBRARY_NOT_FOUND: "no NVIDIA driver (libnvidia-ml.so.1 not found)",
        DRIVER_NOT_LOADED: (
            "the NVIDIA driver is installed but not loaded; load it with `modprobe nvidia` as root"
        ),
        FUNCTION_NOT_FOUND: (
            "the NVIDIA driver is too old: its library has no nvmlInitWithFlags; install a newer "
            "driver"
        ),
        VERSION_MISMATCH: (
            "the library of the NVIDIA driver and its kernel module have different versions; "
            "restart the host"
        ),
    }
    words = f"the NVIDIA driver reports: {said}; `nvidia-smi` should run without an error"
    return GpuUnavailableError(known.get(code, words), code != LIBRARY_NOT_FOUND)


def remedy(code: int, said: str, driver: str, index: int, mig: bool) -> str:
    """What went wrong with a call on the device ``index``, and the next step."""
    if mig and code == NOT_SUPPORTED:
        return (
            "not supported while MIG is enabled; disable it with "
            f"`nvidia-smi -i {index} -mig 0` as root, or use a GPU without MIG"
        )
    known: Mapping[int, Callable[[], str]] = {
        NOT_SUPPORTED: lambda: "this GPU does not support it",
        NO_PERMISSION: lambda: (
            "no permission; run the same command as root (`sudo -E env PATH=$PATH ...`), or in a "
            "container with `--cap-add SYS_ADMIN` (the driver asks for CAP_SYS_ADMIN)"
        ),
        FUNCTION_NOT_FOUND: lambda: (
            f"the driver {driver} is too old and does not have this function; install a newer "
            "driver"
        ),
        GPU_IS_LOST: lambda: (
            "the GPU is lost: it does not answer any more; `dmesg | grep -i xid` says why, "
            f"`nvidia-smi --gpu-reset -i {index}` as root or a restart of the host brings it back"
        ),
        RESET_REQUIRED: lambda: (
            "the GPU must be reset before it answers again: "
            f"`nvidia-smi --gpu-reset -i {index}` as root, or restart the host"
        ),
    }
    return known[code]() if code in known else f"NVML reports: {said}"
