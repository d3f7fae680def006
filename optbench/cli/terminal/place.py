"""Where a verb will write outside of a workspace: said once, before it writes."""

from __future__ import annotations

import sys
from functools import cache


@cache
def announce_store(tracked: bool = False) -> None:
    """Say on stderr where results go if no workspace is found here or above; ``tracked`` if they
    also go to MLflow.
    """
    from optbench.track.tracking_address import FOLDER, TrackingAddress
    from optbench.workspace import MARKER, activate, store

    if activate() is not None:
        return
    places = [str(store())]
    if tracked and TrackingAddress.of().local:
        places.append(str(store().parent / FOLDER))
    sys.stderr.write(
        f"optbench: no workspace is here or above (no {MARKER}): results are written to "
        f"{' and '.join(places)}; `optbench init` makes this folder a workspace\n"
    )
    sys.stderr.flush()
