"""Whether a Ray cluster answers at an address and lets this user in, asked by a process of its own.

Ray itself tries for minutes where something else answers at the port, cannot be interrupted in
that, and speaks of a refused token as of a missing cluster.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from enum import Enum
from typing import Any

# Seconds that the process may take: it loads Ray and asks once.
PROBE_S = 10.0
# What Ray writes where it must have a token and finds none; it aborts then.
NO_TOKEN = b"find an authentication token"


class ClusterAnswer(Enum):
    """What is at an address. The values are the exit codes of the process that asks."""

    CLUSTER = 20
    NONE_HERE = 21
    REFUSED = 22
    UNREADABLE = 23


def probe(target: str) -> ClusterAnswer:
    """Ask ``HOST:PORT``, or the cluster of this machine (``auto``)."""
    words = [sys.executable, "-m", __name__, target]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ClusterAnswer.UNREADABLE
    if NO_TOKEN in done.stderr:
        return ClusterAnswer.REFUSED
    known = {each.value: each for each in ClusterAnswer}
    return known.get(done.returncode, ClusterAnswer.UNREADABLE)


def _take_token() -> None:
    """Do as Ray does for the cluster of this machine: a token's file turns tokens on."""
    try:
        from ray._private.authentication import authentication_token_setup
    except ImportError:  # an earlier version, without tokens
        return
    turn_on = getattr(
        authentication_token_setup, "maybe_enable_token_auth_if_token_available", None
    )
    if turn_on is not None:
        turn_on(warn_if_disabled=False)


def _ask(target: str) -> ClusterAnswer:
    from ray._private.services import canonicalize_bootstrap_address
    from ray.exceptions import AuthenticationError, RayError

    # A compiled module, whose stubs do not name it.
    client: Any = importlib.import_module("ray._raylet")
    if target == "auto":
        _take_token()
    try:
        found = canonicalize_bootstrap_address(target)
        client.GcsClient(address=found)
    except AuthenticationError:
        return ClusterAnswer.REFUSED
    except ConnectionError:
        return ClusterAnswer.NONE_HERE if target == "auto" else ClusterAnswer.UNREADABLE
    except (RayError, RuntimeError):
        return ClusterAnswer.UNREADABLE
    return ClusterAnswer.CLUSTER


if __name__ == "__main__":
    sys.exit(_ask(sys.argv[1]).value)
