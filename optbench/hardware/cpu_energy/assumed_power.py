"""The estimate where no energy can be measured: processor seconds times a stated figure.

12 W per busy core is what the Green Algorithms calculator assumes of an unknown processor (its
table of rated powers, https://github.com/GreenAlgorithms/green-algorithms-tool, data/v3.0: from
4 W per core of a large server to 24 W of a desktop). It is the rated power of a core; what the
rest of the machine draws is not in it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from optbench.errors import ParameterError

VARIABLE, DEFAULT_W = "OPTBENCH_CPU_WATTS", 12.0


def assumed_w(environment: Mapping[str, str] | None = None) -> float:
    """Return the watts of a busy core, from the environment or by default."""
    named = (os.environ if environment is None else environment).get(VARIABLE)
    if not named:
        return DEFAULT_W
    try:
        watts = float(named)
    except ValueError:
        watts = math.nan
    if not 0 < watts < math.inf:
        raise ParameterError(
            f"{VARIABLE} is {named!r}; it must be a positive number, the watts of a busy core, "
            f"such as {DEFAULT_W:g}"
        )
    return watts
