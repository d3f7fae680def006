"""The model of the processor, as the operating system names it."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path


def cpu_model() -> str:
    """Return the model of the processor."""
    with suppress(OSError):  # not Linux
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    return platform.processor() or platform.machine()
