"""A real MLflow server on loopback, and a way to it that loses answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from optbench.track.server import end_session, free_port, is_responding, server_environment

HOST = "127.0.0.1"


class Server:
    """MLflow's server on one database and one port; it may be killed, stopped and started again."""

    def __init__(self, folder: Path, uri: str = "") -> None:
        self.folder, self.uri = folder, uri or f"sqlite:///{folder / 'server.db'}"
        self.port = free_port(HOST, None)
        self.url = f"http://{HOST}:{self.port}"
        self.child: subprocess.Popen[bytes] | None = None

    def start(self, patience_s: float = 110.0) -> None:
        words = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            HOST,
            "--port",
            str(self.port),
            "--workers",
            "1",
        ]
        words += [
            "--backend-store-uri",
            self.uri,
            "--artifacts-destination",
            str(self.folder / "artifacts"),
        ]
        with (self.folder / "server.log").open("ab") as log:
            self.child = subprocess.Popen(
                words, stdout=log, stderr=log, env=server_environment(), start_new_session=True
            )
        deadline = time.monotonic() + patience_s
        while not is_responding(f"{self.url}/health"):
            assert self.child.poll() is None and time.monotonic() < deadline, (
                self.folder / "server.log"
            ).read_text()[-2000:]
            time.sleep(0.05)

    def signal(self, number: int) -> None:
        assert self.child is not None
        os.killpg(self.child.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self.child is not None
        self.child.wait()

    def end(self) -> None:
        if self.child is not None and self.child.poll() is None:
            self.signal(signal.SIGCONT)
            end_session(self.child)


class Forwarder(BaseHTTPRequestHandler):
    """Passes requests on; of every third creation of a run the answer is lost, after the server has
    done it.
    """

    upstream = ""
    created = 0
    lost = 0

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = urllib.request.Request(
            f"{self.upstream}{self.path}", body or None, dict(self.headers), method=self.command
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                code, content = reply.status, reply.read()
        except urllib.error.HTTPError as error:
            code, content = error.code, error.read()
        if self.path.endswith("/runs/create"):
            type(self).created += 1
            if self.created % 3 == 0:
                type(self).lost += 1
                self.close_connection = True
                self.connection.close()
                return
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def forgetful(upstream: str) -> Iterator[tuple[str, type[Forwarder]]]:
    """The address of a forwarder, and its counts."""
    handler = type("OneForwarder", (Forwarder,), {"upstream": upstream})
    with ThreadingHTTPServer((HOST, 0), handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_address[1]}", handler
        server.shutdown()
