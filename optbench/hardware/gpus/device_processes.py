"""The processes that have a context on a GPU, by NVML.

In a container the driver may hide them: it then lists none, or numbers that mean nothing there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from optbench.hardware.gpus.device_reader import DeviceReader
from optbench.hardware.gpus.nvml_calls import has_function

# The newest function that the driver's library has counts.
VERSIONS = ("_v3", "_v2")


class DeviceProcesses:
    """Lists the processes of one device."""

    def __init__(self, reader: DeviceReader) -> None:
        self._nvml, self._handle = reader.nvml, reader.handle
        self._compute, self._graphics = (self._function(each) for each in ("Compute", "Graphics"))

    def _function(self, kind: str) -> Callable[..., Any] | None:
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        found = (name + version for version in VERSIONS if has_function(self._nvml, name + version))
        first = next(found, None)
        return None if first is None else getattr(self._nvml, first)

    def listed(self) -> frozenset[int] | None:
        """Return the living processes that compute or draw there; None where the driver does not
        say.
        """
        computing = self._pids(self._compute)
        if computing is None:
            return None
        pids = computing | (self._pids(self._graphics) or frozenset())
        return frozenset(pid for pid in pids if _exists(pid))

    def _pids(self, call: Callable[..., Any] | None) -> frozenset[int] | None:
        if call is None:
            return None
        try:
            return frozenset(int(each.pid) for each in call(self._handle))
        except self._nvml.NVMLError:
            return None


def _exists(pid: int) -> bool:
    """Whether a number is that of a process here; 0 stands for one of another namespace."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
