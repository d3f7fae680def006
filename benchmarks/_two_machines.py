"""Two machines on one: namespaces of their own for network, host name, processes, mounts and IPC,
joined by a virtual cable. Needs root, util-linux and iproute2.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 600.0
# The first process reaps those whose parents have ended.
SETUP = """hostname {name} && mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /dev/shm
while sleep 1; do :; done"""


@dataclass
class Machine:
    """A machine by its name and address; ``lines`` are said before every command."""

    name: str
    address: str
    home: Path
    path: str
    lines: list[str] = field(default_factory=list)
    unshare: subprocess.Popen[bytes] | None = None
    init: int = 0

    def begin(self) -> None:
        """Make the namespaces."""
        self.home.mkdir(parents=True)
        words = ["unshare", "--net", "--uts", "--pid", "--mount", "--ipc", "--fork", "--mount-proc"]
        script = SETUP.format(name=self.name)
        self.unshare = subprocess.Popen([*words, "--kill-child", "bash", "-c", script])
        children = Path(f"/proc/{self.unshare.pid}/task/{self.unshare.pid}/children")
        deadline = time.monotonic() + 10
        while not children.read_text().split() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.init = int(children.read_text().split()[0])
        while not self._is_set_up() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _is_set_up(self) -> bool:
        """Whether the last of its mounts, after that of /tmp, is there."""
        mounts = Path(f"/proc/{self.init}/mounts").read_text()
        return " /dev/shm " in mounts.rpartition(" /tmp ")[2]

    def enter(self) -> list[str]:
        return ["nsenter", "--target", str(self.init), "--all"]

    def run(
        self, command: str, folder: Path, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell, as somebody who has logged in does."""
        environment = [f"HOME={self.home}", f"PATH={self.path}", "TERM=dumb", "LANG=C.UTF-8"]
        script = "\n".join(["set -e", *self.lines, f"cd {folder}", command])
        done = subprocess.run(
            [*self.enter(), "env", "-i", *environment, "bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if check and done.returncode:
            raise SystemExit(
                f"{self.name}: {command}: exit code {done.returncode}\n{done.stdout[-2000:]}\n"
                f"{done.stderr[-3000:]}"
            )
        return done

    def end(self) -> None:
        """End every process of the machine."""
        if self.unshare is not None:
            self.unshare.kill()
            self.unshare.wait()


@contextmanager
def two_machines(base: Path, path: str) -> Iterator[tuple[Machine, Machine]]:
    """A head at 10.0.0.1 and a node at 10.0.0.2."""
    head = Machine("node1", "10.0.0.1", base / "home1", path)
    node = Machine("node2", "10.0.0.2", base / "home2", path)
    try:
        for each in (head, node):
            each.begin()
        cable = ["ip", "link", "add", "eth0", "netns", str(head.init), "type", "veth"]
        cable += ["peer", "name", "eth0", "netns", str(node.init)]
        subprocess.run(cable, check=True)
        for each in (head, node):
            for words in (
                f"ip addr add {each.address}/24 dev eth0",
                "ip link set eth0 up",
                "ip link set lo up",
            ):
                subprocess.run([*each.enter(), *words.split()], check=True)
        yield head, node
    finally:
        for each in (head, node):
            each.end()
