"""Messages between the runner, the zygote and the slots: one JSON object per line of a socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any


class MessageChannel:
    """One end of a channel."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._held = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def incomplete_bytes(self) -> int:
        """The length of the line of which the end has not arrived."""
        return len(self._held)

    def send(self, message: Mapping[str, Any]) -> bool:
        """Send a message; return whether the other end is still open."""
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def receive(self) -> list[dict[str, Any]] | None:
        """Return what has arrived, or None once the other end is closed; may block."""
        try:
            part = self.socket.recv(1 << 16)
        except (ConnectionResetError, InterruptedError):
            part = b""
        if not part:
            return None
        *lines, self._held = (self._held + part).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        self.socket.close()
