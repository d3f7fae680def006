"""A real Ray cluster of two nodes on this machine, which tests share and may damage."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

RAY = Path(sys.executable).with_name("ray")
# Of each node: enough for a cell with two threads, and little for what Ray itself keeps.
NODE = (
    *("--num-cpus=2", "--memory=6000000000", "--object-store-memory=80000000"),
    *("--disable-usage-stats", "--min-worker-port=0", "--max-worker-port=0"),
)
START_S, END_S = 60.0, 20.0


class RayNodes:
    """The head and a worker node, as raylets of their own; ``folder`` is theirs alone."""

    def __init__(self) -> None:
        # The paths of Ray's sockets must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="ob-ray-", dir="/tmp"))
        (self.folder / "core-locks").mkdir()
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        head = ("--head", f"--port={self.port}", "--include-dashboard=false")
        self._start(*head, f"--temp-dir={self.folder}/r")
        self.head = self.raylets()[0]
        self.add_node("--num-gpus=2")

    def add_node(self, *words: str, **environment: str) -> psutil.Process:
        """Start one more worker node; return its raylet."""
        before = set(self.raylets())
        self._start(f"--address={self.address}", *words, **environment)
        (new,) = set(self.raylets()) - before
        return new

    def workers(self) -> list[psutil.Process]:
        """The raylets of nodes other than the head."""
        return [each for each in self.raylets() if each != self.head]

    def complete(self) -> None:
        """Start a worker node if a test has killed it."""
        if not self.workers():
            self.add_node("--num-gpus=2")

    def raylets(self) -> list[psutil.Process]:
        return [each for each in self._processes() if _words(each)[0].endswith("/raylet")]

    def kill_node(self, raylet: psutil.Process) -> None:
        """End a node as a power cut does; what it started is left to notice."""
        raylet.send_signal(signal.SIGKILL)
        raylet.wait(END_S)

    def environment(self) -> dict[str, str]:
        """The environment of a driver, and of the nodes."""
        out = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
        return {
            **out,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(self.folder / "r"),
            "OPTBENCH_CORE_LOCKS": str(self.folder / "core-locks"),
        }

    def _start(self, *words: str, **environment: str) -> None:
        paths = {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        done = subprocess.run(
            [str(RAY), "start", *words, *NODE],
            env={**self.environment(), **paths, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _processes(self) -> list[psutil.Process]:
        """Processes whose command line names the folder of this cluster."""
        mark = f"{self.folder}/"
        found = [each for each in psutil.process_iter() if mark in " ".join(_words(each))]
        return sorted(found, key=lambda process: process.create_time())

    def close(self) -> None:
        """End the cluster; its workers end with their raylets."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        deadline = time.monotonic() + END_S
        while self._processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or [""]
    except psutil.Error:
        return [""]
