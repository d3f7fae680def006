"""The socket of a node's agent: where it lies, who may speak to it, and how a lease reaches it."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.execute.cell_pool import LOOK_S
from optbench.execute.message_channel import MessageChannel

# Process, user and group of the other end, as the kernel writes them.
CREDENTIALS = struct.Struct("3i")
SOCKETS = "*.sock"


def private_folder() -> Path:
    """Return this user's folder of sockets and job folders on this machine."""
    folder = Path(tempfile.gettempdir()) / f"optbench-cluster-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if folder.is_symlink() or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise OptbenchError(
            f"{folder} must be a folder of this user's with mode 700; remove it, or set $TMPDIR"
        )
    return folder


def socket_path(secret: str, node_id: str) -> Path:
    """Return the agent's socket; its name shows half of the secret, which is no use without the
    other.
    """
    return private_folder() / f"{secret[:12]}-{node_id[:12]}.sock"


def remove_dead_sockets() -> None:
    """Remove the sockets of agents that were killed: nobody answers there."""
    for path in private_folder().glob(SOCKETS):
        with socket.socket(socket.AF_UNIX) as end:
            try:
                end.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue


def is_from_a_cell(end: socket.socket) -> bool:
    """Whether the other end was opened by a process that this one has started, as all cells are."""
    if not hasattr(socket, "SO_PEERCRED"):
        return False
    given = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    process: int = CREDENTIALS.unpack(given)[0]
    while (process := _parent(process)) > 1:
        if process == os.getpid():
            return True
    return False


def _parent(process: int) -> int:
    """Return the parent of a process; 0 where it has ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    return int(words.rpartition(")")[2].split()[1])


def connect(secret: str, node_id: str, wait_s: float) -> MessageChannel | None:
    """Return a channel to this node's agent; None if it does not answer."""
    deadline = time.monotonic() + wait_s
    while True:
        end = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError, ConnectionRefusedError):
            end.connect(str(socket_path(secret, node_id)))
            channel = MessageChannel(end)
            channel.send({"secret": secret})
            return channel
        end.close()
        if time.monotonic() > deadline:
            return None
        time.sleep(LOOK_S)
