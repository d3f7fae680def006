"""The systemd units that ship: a service that restores by the journals, and a timer that starts it.

The service runs at boot and does nothing without a journal; the timer runs it again and again, for
an apply and a watchdog that are both killed while the host goes on.
"""

from __future__ import annotations

import os
import sys
from importlib import resources

from optbench.hardware.clock_control.state_folder import OF_ROOT, VARIABLE

UNITS = ("service", "timer")
NAME = "optbench-gpu-restore"


def systemd_unit(kind: str) -> str:
    """The text of a unit for this installation: its Python, and the folder of journals of root, who
    runs it.
    """
    file = resources.files("optbench.hardware.clock_control") / f"{NAME}.{kind}"
    text = file.read_text(encoding="utf-8")
    folder = os.path.abspath(os.environ.get(VARIABLE) or OF_ROOT)
    for mark, value in (("@FOLDER@", folder), ("@PYTHON@", sys.executable)):
        text = text.replace(mark, _escaped(value))
    return text


def _escaped(value: str) -> str:
    """A path between quotation marks, where systemd expands % and reads backslashes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
