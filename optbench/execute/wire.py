"""Messages between the runner, the zygote and the slots: a JSON object per line of a socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any


class Wire:
    """One end. ``receive`` returns what has arrived by now; None once the other end is closed."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._held = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Mapping[str, Any]) -> bool:
        """Whether the other end is still there to read it."""
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def receive(self) -> list[dict[str, Any]] | None:
        """Waits when nothing has arrived: look with ``select`` first."""
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
