"""Run MLflow's server and the dashboards as child processes that end with the caller."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path

from optbench.track.runs import TrackingError
from optbench.track.tracking_address import ARTIFACTS, FOLDER, VARIABLE, TrackingAddress

DEFAULT_PORT, PORTS_TRIED = 5000, 50
START_S, STOP_S, LOOK_S = 120.0, 2.0, 0.1
# Background jobs of MLflow's server serve other purposes and cost eight processes; telemetry is
# switched off.
SETTINGS = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}

# Ends a session when the process that holds the other end of its input ends, even if it is killed.
GUARD = "import os, signal, sys; sys.stdin.read(); os.killpg(int(sys.argv[1]), signal.SIGTERM)"


def free_port(host: str, port: int | None) -> int:
    """Return the requested port, or the first free one from MLflow's default on."""
    wanted = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
    problem = ""
    for number in wanted:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with closing(socket.socket(family, socket.SOCK_STREAM)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, number))
            except (OSError, OverflowError) as error:
                problem = getattr(error, "strerror", None) or str(error)
            else:
                return int(trial.getsockname()[1])
    asked = str(port) if port is not None else f"{DEFAULT_PORT} to {DEFAULT_PORT + PORTS_TRIED - 1}"
    raise TrackingError(
        f"cannot listen on {host} port {asked}: {problem}; name another one (--port, --host)"
    )


def server_words(place: TrackingAddress, host: str, port: int) -> list[str]:
    """Return the command that starts MLflow's server on a store."""
    options = {
        "--host": host,
        "--port": str(port),
        "--workers": "1",
        "--backend-store-uri": place.uri,
        "--artifacts-destination": str(place.folder / FOLDER / ARTIFACTS),
    }
    return [sys.executable, "-m", "mlflow", "server", *chain.from_iterable(options.items())]


def server_environment() -> dict[str, str]:
    """Return the environment without the tracking address, which the server would use."""
    return {**{key: value for key, value in os.environ.items() if key != VARIABLE}, **SETTINGS}


@contextmanager
def serving(
    words: Sequence[str], url: str, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server, wait until it answers, and end it with all its processes on exit."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment or os.environ),
            start_new_session=True,
        )
        guard = subprocess.Popen(
            [sys.executable, "-c", GUARD, str(child.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _wait_for(child, url, log)
            yield child
        finally:
            end_session(child)
            guard.kill()
            guard.communicate()


def _wait_for(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise TrackingError(
                f"the server ended with exit code {child.returncode}; {log} ends with: {_tail(log)}"
            )
        if is_responding(url):
            return
        time.sleep(LOOK_S)
    raise TrackingError(
        f"the server does not answer at {url} after {START_S:g} s; {log} ends with: {_tail(log)}"
    )


def is_responding(url: str) -> bool:
    """Whether the URL returns a page."""
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def end_session(child: subprocess.Popen[bytes]) -> None:
    """Terminate the session, then kill it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue
        if number == signal.SIGTERM:
            time.sleep(LOOK_S)  # workers end after their master
    child.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "nothing"
