"""Where a verb will write outside of a workspace: said once, before it writes."""

from __future__ import annotations

import sys
from functools import cache


@cache
def announce_store() -> None:
    """Say on stderr where results go if no workspace is found here or above."""
    from optbench.workspace import MARKER, activate, store

    if activate() is None:
        sys.stderr.write(
            f"optbench: no workspace is here or above (no {MARKER}): results are written to "
            f"{store()}; `optbench init` makes this folder a workspace\n"
        )
        sys.stderr.flush()
