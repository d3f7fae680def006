"""Calls of NVML on a device, whose errors name the device, the call and the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from optbench.hardware.gpus.gpu_device import GpuDevice
from optbench.hardware.gpus.nvml_errors import GpuError, remedy

T = TypeVar("T")


def called(nvml: Any, device: GpuDevice, call: Callable[..., T], *words: Any) -> T:
    """Call a function of NVML."""
    try:
        return call(*words)
    except nvml.NVMLError as error:
        raise explained(device, call.__name__, error) from None


def explained(device: GpuDevice, call: str, error: Any) -> GpuError:
    """NVML's error in words."""
    words = remedy(error.value, str(error), device.driver, device.index, device.mig)
    return GpuError(device.title, call, error.value, words)


def has_function(nvml: Any, name: str) -> bool:
    """Whether the driver's library has a function at all."""
    return hasattr(nvml.nvmlLib, name)


def reasons_function(nvml: Any) -> Callable[..., Any]:
    """The function for the reasons of a clock; an older driver knows the former name alone."""
    found: Callable[..., Any] = (
        nvml.nvmlDeviceGetCurrentClocksEventReasons
        if has_function(nvml, "nvmlDeviceGetCurrentClocksEventReasons")
        else nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    )
    return found


def field_value(nvml: Any, found: Any) -> Any:
    """The value of a field that nvmlDeviceGetFieldValues returned; NVML's error where it failed."""
    if found.nvmlReturn != nvml.NVML_SUCCESS:
        raise nvml.NVMLError(found.nvmlReturn)
    name = VALUE_MEMBERS[found.valueType]
    return getattr(found.value, name)


# Members of the union nvmlValue_t by nvmlValueType_t.
VALUE_MEMBERS = {
    0: "dVal",
    1: "uiVal",
    2: "ulVal",
    3: "ullVal",
    4: "sllVal",
    5: "siVal",
    6: "usVal",
}
