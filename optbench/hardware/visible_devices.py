"""Which GPUs a program may use, by the variable with which CUDA is told so."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "CUDA_VISIBLE_DEVICES"


def devices_given(environment: Mapping[str, str] | None = None) -> tuple[str, ...] | None:
    """Return the devices by index or UUID; empty for none; None where the variable is not set, so
    that a program may use any.

    CUDA ignores what follows an index below zero.
    """
    value = (os.environ if environment is None else environment).get(VARIABLE)
    if value is None:
        return None
    out: list[str] = []
    for name in map(str.strip, value.split(",")):
        if not name or name.startswith("-") or name.lower() in ("none", "nodevfiles"):
            break
        out.append(name)
    return tuple(out)
